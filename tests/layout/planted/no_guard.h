/* Planted: cannot be included twice. The test of this header must fail. */
struct rfl_planted {
	int x;
};
