// Package worker runs parts of a benchmark in processes of their own: this program, started again.
// A process has a heap, a scheduler and connections of its own, can be bound to a CPU, and can be
// killed when what is measured in it hangs.
//
// The parent writes one line of JSON per task to the standard input of a worker, and the worker
// replies with one on its standard output. A worker ends when its input does, so none outlives the
// program.
//
// A client that is not in Go is in another program, which does tasks in the same way.
package worker
