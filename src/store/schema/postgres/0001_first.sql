-- What every append checks and moves; one row, so that its lock orders all who write.
CREATE TABLE drover_state (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        version integer NOT NULL DEFAULT 0, -- of this schema
        store text NOT NULL,                -- a uuid: which log this is, wherever a copy of it may be
        term bigint NOT NULL DEFAULT 0,     -- appends with an older one are refused
        number bigint NOT NULL DEFAULT 0,   -- of the last transaction that wrote
        cut bigint NOT NULL DEFAULT 0       -- records up to this number may be missing
) WITH (fillfactor = 10);

-- Records, numbered without gaps. crc: CRC-32C of the number and the record.
CREATE TABLE drover_log (
        seq bigint PRIMARY KEY,
        crc bigint NOT NULL,
        record bytea NOT NULL
);

-- A snapshot is in when it is complete; its parts are drover_snapshot_part's ids id * 2^20 and up.
CREATE TABLE drover_snapshot (
        id bigint PRIMARY KEY,
        seq bigint NOT NULL,
        size bigint NOT NULL, -- bytes
        complete boolean NOT NULL DEFAULT false
);
CREATE TABLE drover_snapshot_part (
        id bigint PRIMARY KEY,
        crc bigint NOT NULL, -- of id and data
        data bytea NOT NULL
);

CREATE TABLE drover_blob (
        name bytea PRIMARY KEY,
        crc bigint NOT NULL,
        data bytea NOT NULL
);

-- One row per finished job. The server gives the ids.
CREATE TABLE drover_history (
        id bigint PRIMARY KEY,
        request bigint NOT NULL,
        member bigint NOT NULL,
        state bigint NOT NULL,
        submitted bigint NOT NULL, -- Unix milliseconds, like ended
        ended bigint NOT NULL,
        exit_code bigint NOT NULL,
        owner bytea NOT NULL,
        crc bigint NOT NULL, -- of all the other columns but id
        data bytea NOT NULL
);
-- The rows of an owner, or of a request, are there in the order of listings.
CREATE INDEX drover_history_job ON drover_history (request, member);
CREATE INDEX drover_history_request ON drover_history (request, id);
CREATE INDEX drover_history_owner ON drover_history (owner, id);

-- Large values are kept as they are: trying to compress them costs more than the space they take.
ALTER TABLE drover_log ALTER record SET STORAGE EXTERNAL;
ALTER TABLE drover_snapshot_part ALTER data SET STORAGE EXTERNAL;
ALTER TABLE drover_blob ALTER data SET STORAGE EXTERNAL;
ALTER TABLE drover_history ALTER data SET STORAGE EXTERNAL;
