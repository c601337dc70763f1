-- The latest nodes of a key are found without reading all of them: many conversations begin alike.

CREATE INDEX nodes_by_position ON nodes (key, number);
