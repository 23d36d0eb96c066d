package measure

// Jain is Jain's index of fairness over the shares that each got: 1 if all got the same, 1/n if one of n got everything. It
// is 1 when nobody got anything.
func Jain(shares []int) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 1
	}
	return sum * sum / (float64(len(shares)) * squares)
}
