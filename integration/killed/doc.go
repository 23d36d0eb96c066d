// Package killed has a test of package holdfast/once with processes that are killed.
package killed
