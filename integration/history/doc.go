// Package history records what the processes of a chaos run did to locks, and judges it.
//
// A history is a list of [Event], one JSON line each: what a process asked for, what the call
// returned, how long a hold could be trusted, and what was done to servers, networks and processes
// meanwhile. [New] combines them to [Acquisition]s, and the checks look for breaches of what
// holdfast promises:
//
//	Exclusion    no two holds of one lock are valid at the same time, unless both read
//	Linearizable all of it could have happened in one order on a perfect lock (package porcupine)
//	Fences       a later acquisition of a fenced lock has a larger token
//	Fairness     the waiters of a fair lock get it in the order of the queue
//	Waits        a call ends within its wait
//	WakeUps      a free lock that has waiters is acquired
//	Progress     a lock with patient waiters is granted, however many others leave
//	Kept         no hold is lost before its deadline, and a renewed one only if something failed
//	Answers      an outcome is unknown only if something failed
//	Remains      what was released is free, and nothing is left behind
//
// All instants are readings of the machine's monotonic clock, which all its processes share. Every
// judgement errs on the side of the lock: a hold counts as valid from the first to the last moment
// at which its holder found it so. What is reported did happen, whatever the scheduler did.
package history
