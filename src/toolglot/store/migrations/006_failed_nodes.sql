-- Whether a request repeats one that failed is asked for every record: from an index of these few nodes alone.

CREATE INDEX nodes_by_failure ON nodes (key, session) WHERE length(answer) = 20;
