-- Each index ends with the row's id: the rows of an owner, or of a request, are there in the order of listings.
DROP INDEX history_owner;
CREATE INDEX history_owner ON history (owner);
CREATE INDEX history_request ON history (request);
