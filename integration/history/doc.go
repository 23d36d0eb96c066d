// Package history records what the processes of a chaos run did to locks, and judges it.
//
// A history is a list of [Event], one JSON line each: what a process asked for, what it was told, until when it could
// trust a hold, and what was done to servers, networks and processes meanwhile. [New] makes [Acquisition]s of it, and the
// checks look for breaches of what holdfast promises:
//
//	Exclusion    no two holds of one lock are valid at the same time, unless both read
//	Linearizable there is one order in which all of it could have happened on a perfect lock (package porcupine)
//	Fences       a later acquisition of a fenced lock has a larger token
//	Fairness     those who wait for a fair lock get it in the order of the queue
//	Waits        a call ends within its wait
//	WakeUps      a lock that is free and waited for is taken
//	Progress     a lock that is waited for patiently is granted to somebody, however many leave
//	Kept         a hold is not lost before its deadline, and one that the watchdog renews only if something failed
//	Answers      an outcome is unknown only if something failed
//	Remains      what was released is free, and nothing is left behind
//
// All instants are read from the machine's monotonic clock, which all processes on it share. Every judgement is made of
// bounds that err on the side of the lock: a hold counts as valid from the moment at which its holder has seen it so to the
// last moment at which it has seen it so. So what is reported did happen, whatever the scheduler did.
package history
