//go:build model

package model

import "fmt"

// differ returns an error unless the model and the code have the same.
func differ[T comparable](what string, model, code T) error {
	if model != code {
		return fmt.Errorf("%s: %v in the model, %v in the code", what, model, code)
	}
	return nil
}
