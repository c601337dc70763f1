"""The codecs: how the arguments of a call are written, one file each."""
