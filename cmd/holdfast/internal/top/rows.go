package top

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/cmd/holdfast/internal/locks"
	"holdfast/cmd/holdfast/internal/view"
)

// row is a lock in the table.
type row struct {
	locks.Lock
	change change
}

// change is what is different from the refresh before, as one character in front of the row.
type change byte

const (
	same    change = ' '
	added   change = '+'
	gone    change = '-' // shown for one refresh, as it was
	changed change = '*' // another holder
)

// compare returns the rows for what a scan found, given the rows before; nil if there was none.
func compare(before []row, all []locks.Lock) []row {
	old := map[string]locks.Lock{}
	for _, r := range before {
		if r.change != gone {
			old[r.Name] = r.Lock
		}
	}
	rows := make([]row, 0, len(all))
	for _, l := range all {
		r := row{l, same}
		if was, ok := old[l.Name]; before != nil && !ok {
			r.change = added
		} else if before != nil && !slices.Equal(owners(was), owners(l)) {
			r.change = changed
		}
		delete(old, l.Name)
		rows = append(rows, r)
	}
	for _, l := range old {
		rows = append(rows, row{l, gone})
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Waiting(), a.Waiting()), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// owners returns who holds a lock, in order.
func owners(l locks.Lock) []string {
	all := make([]string, len(l.Holders))
	for i, h := range l.Holders {
		all[i] = h.Owner
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// filter returns the rows that have the text in their names or holders, in upper or lower case.
func filter(rows []row, text string) []row {
	text = strings.ToLower(text)
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		return !strings.Contains(strings.ToLower(r.Name+"\n"+view.Holders(r.Lock)), text)
	})
}
