package measure

// Jain returns Jain's index of fairness: 1 if all shares are equal, 1/n if one of n is everything.
// It returns 1 if all shares are 0.
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
