# Both sources are rows wherever it runs; what cannot count here says why, and what to do.
roofline list sources
