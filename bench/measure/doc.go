// Package measure turns observations into figures: quantiles, fairness, medians of rounds, and
// memory. It has a clock that all processes of a machine share.
package measure
