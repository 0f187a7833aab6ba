-- What every append checks and moves.
CREATE TABLE state (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        term INTEGER NOT NULL, -- appends with an older one are refused
        cut INTEGER NOT NULL   -- records up to this number may be missing
);
INSERT INTO state VALUES (1, 0, 0);

-- Records, numbered without gaps. crc: CRC-32C of the number and the record.
CREATE TABLE log (
        seq INTEGER PRIMARY KEY,
        crc INTEGER NOT NULL,
        record BLOB NOT NULL
);

-- A snapshot is in when it is complete; its parts are snapshot_part's ids id * 2^20 and up.
CREATE TABLE snapshot (
        id INTEGER PRIMARY KEY,
        seq INTEGER NOT NULL,
        size INTEGER NOT NULL, -- bytes
        complete INTEGER NOT NULL
);
CREATE TABLE snapshot_part (
        id INTEGER PRIMARY KEY,
        crc INTEGER NOT NULL, -- of id and data
        data BLOB NOT NULL
);

CREATE TABLE blob (
        id INTEGER PRIMARY KEY,
        name BLOB NOT NULL UNIQUE,
        crc INTEGER NOT NULL,
        data BLOB NOT NULL
);

-- One row per finished job.
CREATE TABLE history (
        id INTEGER PRIMARY KEY,
        request INTEGER NOT NULL,
        member INTEGER NOT NULL,
        state INTEGER NOT NULL,
        submitted INTEGER NOT NULL, -- Unix milliseconds, like ended
        ended INTEGER NOT NULL,
        exit_code INTEGER NOT NULL,
        owner BLOB NOT NULL,
        crc INTEGER NOT NULL, -- of all the other columns but id
        data BLOB NOT NULL
);
CREATE INDEX history_job ON history (request, member);
CREATE INDEX history_owner ON history (owner, ended);
