"""The five wires without the code of toolglot's own wires: see ``oracle.records``."""
