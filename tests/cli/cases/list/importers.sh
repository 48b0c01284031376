# The kinds of files that 'counters import' reads.
roofline list importers
