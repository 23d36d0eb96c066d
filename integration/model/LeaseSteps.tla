----------------------------- MODULE LeaseSteps -----------------------------
\* Lease with the timers of the code, so that rlock/tla_lease_test.go can make the code take the same
\* steps: renewals are sent on time (watchdog/schedule.go and renew.go), and callers leave when their
\* time is over. step is what led to a state. All timers that are due are handled before anything
\* else happens.
EXTENDS Lease

VARIABLES step,
          dice,    \* draws, so that some steps come seldom
          clock,   \* ticks since the beginning
          tick,    \* until the next tick of the watchdog; -1 without one
          ticked,  \* when the last one was
          batch,   \* what a lease is due with: a Batch, or None if it is not due
          calls,   \* of the renewals under way: when each began, how often it was sent, and whether
                   \* the server is slow to execute it and to reply
          budget   \* until a caller leaves

timers == <<clock, tick, ticked, batch, calls, budget>>

Third == WatchdogLease \div 3
CallTimeout == WatchdogLease \div 6
Early == WatchdogLease \div 30
CommandTimeout == WatchdogLease \div 5
MostSends == 3  \* fewer than in transport/calls.go, so that a lost connection is no failure

\* Batch is that of a lease which the tick at since made due. Its call begins at the instant at; once
\* it is called, at is when that call is overdue. The call is then the last of calls.
Batch(since) ==
    [since |-> since, at |-> clock, called |-> FALSE, patience |-> CallTimeout, delay |-> 0]

Called(b) == [b EXCEPT !.at = clock + b.patience, !.called = TRUE]

\* Repeated is the batch with which the lease of an overdue call is called again: repeat in renew.go.
Repeated(b) == Called([b EXCEPT !.patience = 2 * @, !.delay = 0])

\* NextDelay: wait.Backoff between lease/600 and lease/60.
NextDelay(n) ==
    IF n = 0 THEN Max(WatchdogLease \div 600, 1) ELSE Min(2 * n, Max(WatchdogLease \div 60, 1))

\* Failed is a batch whose call has failed.
Failed(b) ==
    LET delay == NextDelay(b.delay)
    IN  [b EXCEPT !.at = clock + delay, !.called = FALSE, !.delay = delay]

StepsInit ==
    /\ Init
    /\ step = [do |-> "Init"]
    /\ dice \in 0..100
    /\ clock = 0
    /\ tick = [o \in Owners |-> -1]
    /\ ticked = [o \in Owners |-> 0]
    /\ batch = [o \in Owners |-> None]
    /\ calls = [o \in Owners |-> <<>>]
    /\ budget = [o \in Owners |-> -1]

\* Is reports whether the step is do, and o's.
Is(do, o) == step'.do = do /\ step'.who = o

\* Later returns what a timer is after the step, unless that sets it.
Later(timer) == IF step'.do = "Pass" /\ timer > 0 THEN Max(timer - step'.ticks, 0) ELSE timer

Watched(o) == state[o] = "active" /\ renews[o]

\* Current reports whether a renewal is the call of the lease's batch. If not, another has followed
\* it, or is not needed: its failure changes nothing, but its reply counts.
Current(o, n) == batch[o] # None /\ batch[o].called /\ n = Len(calls[o])

\* Renewed is the batch after the reply that a call has renewed the lease: handle in renew.go. If a
\* tick came after it began, the lease is due again.
Renewed(o, began) ==
    LET rest == IF batch[o] # None /\ batch[o].since <= began THEN None ELSE batch[o]
    IN  IF rest = None /\ began < ticked[o] THEN Batch(ticked[o]) ELSE rest

\* LosesConnection reports whether a command of o loses its connection. All leases are then due at
\* once, if the last tick is not too recent: RenewNow in watchdog/watchdog.go.
LosesConnection(o) == Is("Fail", o) \/ Is("SendAgain", o) \/ Is("LoseStray", o)

SetTimers ==
    /\ clock' = IF step'.do = "Pass" THEN clock + step'.ticks ELSE clock
    /\ tick' = [o \in Owners |->
         IF ~Watched(o)' THEN -1
         ELSE IF ~Watched(o) \/ Is("Tick", o) THEN Third
         ELSE IF LosesConnection(o) THEN Min(tick[o], Max(ticked[o] + Early - clock, 0))
         ELSE Later(tick[o])]
    /\ ticked' = [o \in Owners |-> IF Is("Tick", o) THEN clock ELSE ticked[o]]
    /\ batch' = [o \in Owners |->
         IF ~Watched(o)' THEN None
         ELSE IF Is("Tick", o) /\ batch[o] = None THEN Called(Batch(clock))
         ELSE IF Is("Retry", o) THEN Called(batch[o])
         ELSE IF Is("Overdue", o) THEN Repeated(batch[o])
         ELSE IF Is("RenewalFails", o) /\ Current(o, step'.n) THEN Failed(batch[o])
         ELSE IF Is("RenewalReply", o) THEN Renewed(o, calls[o][step'.n].began)
         ELSE batch[o]]
    /\ calls' = [o \in Owners |->
         IF Len(renewals'[o]) > Len(renewals[o])
         THEN Append(calls[o], [began |-> clock, sends |-> 1, slow |-> dice % 4 = 0])
         ELSE IF Len(renewals'[o]) < Len(renewals[o]) THEN Removed(calls[o], step'.n)
         ELSE IF Is("SendAgain", o) THEN [calls[o] EXCEPT ![step'.n].sends = @ + 1]
         ELSE calls[o]]
    /\ budget' = [o \in Owners |->
         IF call'[o] = None \/ ~call'[o].waits THEN -1
         ELSE IF call[o] = None THEN CommandTimeout
         ELSE Later(budget[o])]

Expires(o) == state[o] = "active" /\ left[o] <= 0

\* EndsIn is the time until nobody waits for a renewal any more, because the lease that it would give
\* is over. That of the current call may not end so: the code would find it 2 ms before the tick.
EndsIn(o, n) == renewals[o][n].left - (IF Current(o, n) THEN 1 ELSE 0)

\* DueIn is the time until the batch is called, or is called again; -1 without one.
DueIn(o) == IF batch[o] = None THEN -1 ELSE Max(batch[o].at - clock, 0)

\* Fires reports whether a timer of o is due, or its process has just continued.
Fires(o) ==
    \/ process[o] = "waking"
    \/ /\ process[o] = "runs"
       /\ \/ Expires(o) \/ 0 \in {tick[o], DueIn(o), budget[o]}
          \/ \E n \in DOMAIN calls[o] : EndsIn(o, n) <= 0

\* Timers returns for how long the timers of o still run.
Timers(o) ==
    IF process[o] = "stopped" THEN {}
    ELSE {t \in {tick[o], DueIn(o), budget[o], IF state[o] = "active" THEN left[o] ELSE 0}
                  \cup {EndsIn(o, n) : n \in DOMAIN calls[o]} : t > 0}

\* Soonest is how long it is until the next timer fires.
Soonest ==
    LET all == UNION {Timers(o) : o \in Owners} \cup {Third}
    IN  CHOOSE t \in all : \A other \in all : t <= other

Step(do, o) == step' = [do |-> do, who |-> o]
StepOf(do, o, n) == step' = [do |-> do, who |-> o, n |-> n]

\* Fails: renewal n of o fails with an error; with may nobody waits for it any more.
Fails(o, n, may) ==
    /\ RenewalFails(o, n, may)
    /\ step' = [do |-> "RenewalFails", who |-> o, n |-> n, may |-> may]

Fired(o) ==
    \/ process[o] # "stopped" /\ Expires(o) /\ Expire(o) /\ Step("Expire", o)
    \/ Wake(o) /\ Step("Wake", o)
    \/ /\ process[o] = "runs" /\ ~Expires(o)
       /\ \/ /\ tick[o] = 0
             /\ IF batch[o] = None THEN Renew(o) ELSE UNCHANGED vars
             /\ Step("Tick", o)
          \/ /\ tick[o] # 0 /\ DueIn(o) = 0
             /\ Renew(o)
             /\ Step(IF batch[o].called THEN "Overdue" ELSE "Retry", o)
          \/ \E n \in DOMAIN calls[o], may \in Strays :
               /\ EndsIn(o, n) <= 0
               /\ may => ~Current(o, n)
               /\ may \/ dice % 2 = 0 \/ Current(o, n) \/ stray[o] # None
                      \/ renewals[o][n].at # "sent"
               /\ Fails(o, n, may)
          \* The model has no room for another renewal: one that is not needed fails.
          \/ /\ Len(calls[o]) = InFlight
             /\ (tick[o] = 0 /\ batch[o] = None) \/ DueIn(o) = 0
             /\ \E n \in DOMAIN calls[o] : ~Current(o, n) /\ Fails(o, n, FALSE)
          \/ budget[o] = 0 /\ GiveUp(o) /\ Step("GiveUp", o)

\* Steady reports whether nothing of o is under way that would have to stop with its process.
Steady(o) == call[o] = None /\ renewals[o] = <<>> /\ batch[o] = None /\ Clean(o)

\* Underway reports whether a command is waited for, or may be executed, other than a slow renewal.
Underway ==
    \E o \in Owners :
      \/ call[o] # None \/ stray[o] # None \/ ~Clean(o)
      \/ \E n \in DOMAIN calls[o] : ~calls[o][n].slow

Seldom == dice % 8 = 0

\* Paused reports whether a single tick has just passed. Only then may something end a hold: else few
\* holds would last.
Paused == step.do = "Pass" /\ step.ticks = 1 /\ dice % 3 = 0

\* Long has the steps of time. Without commands under way, time soon gets to the next timer.
Long == IF Underway /\ ~Seldom THEN {1, 30} ELSE {1, Soonest - 1, Soonest}

Chosen ==
    \/ \E d \in {n \in Long : n > 0 /\ n <= Soonest} :
         \E gain \in IF slack > 0 \/ d < 30 THEN {0} ELSE {-1, 1} :
           /\ step.do # "Pass" \/ ~Underway
           /\ Pass(d, gain)
           /\ step' = [do |-> "Pass", who |-> "", ticks |-> d, gain |-> gain]
    \/ Paused /\ AnotherTakes /\ Step("AnotherTakes", "")
    \/ AnotherLeaves /\ Step("AnotherLeaves", "")
    \/ Paused /\ TakeAway /\ Step("TakeAway", "")
    \/ \E o \in Owners :
         \/ \E lease \in Leases :
              \/ /\ Seldom
                 /\ Acquire(o, lease, FALSE)
                 /\ step' = [do |-> "Acquire", who |-> o, lease |-> lease]
              \/ /\ Seldom
                 /\ Extend(o, lease)
                 /\ step' = [do |-> "Extend", who |-> o, lease |-> lease]
         \/ /\ Acquire(o, WatchdogLease, TRUE)
            /\ step' = [do |-> "Acquire", who |-> o, lease |-> -1]
         \/ Execute(o) /\ Step("Execute", o)
         \/ Reply(o) /\ Step("Reply", o)
         \/ Paused /\ Release(o) /\ Step("Release", o)
         \/ Paused /\ Leave(o) /\ Step("Leave", o)
         \/ Paused /\ Steady(o) /\ Stop(o) /\ Step("Stop", o)
         \/ Continue(o) /\ Step("Continue", o)
         \/ Fail(o, FALSE) /\ Step("Fail", o)
         \/ ExecuteStray(o) /\ Step("ExecuteStray", o)
         \/ dice % 2 = 0 /\ LoseStray(o) /\ Step("LoseStray", o)
         \/ \E n \in DOMAIN calls[o] :
              \/ /\ calls[o][n].slow => Seldom
                 /\ \/ ExecuteRenewal(o, n) /\ StepOf("ExecuteRenewal", o, n)
                    \/ RenewalReply(o, n) /\ StepOf("RenewalReply", o, n)
              \/ Seldom /\ Fails(o, n, FALSE)
              \/ /\ Seldom /\ calls[o][n].sends < MostSends
                 /\ SendAgain(o, n)
                 /\ StepOf("SendAgain", o, n)
         \/ CleanUp(o) /\ Step("CleanUp", o)
         \/ ExecuteCleanup(o) /\ Step("ExecuteCleanup", o)
         \/ CleanupReply(o) /\ Step("CleanupReply", o)

StepsNext ==
    /\ IF \E o \in Owners : Fires(o) THEN \E o \in Owners : Fired(o) ELSE Chosen
    /\ SetTimers
    /\ dice' = (dice * 38 + 53) % 101

StepsSpec == StepsInit /\ [][StepsNext]_<<vars, step, dice, timers>>
=============================================================================
