// Package recipes has the code of docs/recipes.md, so that tests run it. A test in
// integration/documents finds each block of that page in this package or in another example.
package recipes
