// Package measure turns what was observed into figures: quantiles, fairness, medians of rounds, memory, and a clock that all
// processes of a machine share.
package measure
