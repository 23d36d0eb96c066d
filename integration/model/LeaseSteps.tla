----------------------------- MODULE LeaseSteps -----------------------------
\* Lease with the timers of the code, so that rlock/tla_lease_test.go can make the code take the same
\* steps: renewals are sent on time (watchdog/schedule.go and renew.go), and callers leave when their
\* time is over. step is what led to a state. All timers that are due are handled before anything
\* else happens.
EXTENDS Lease

VARIABLES step,
          dice,    \* draws, so that some steps come seldom
          tick,    \* until the next tick of the watchdog; -1 without one
          retry,   \* until a batch that failed is due; -1 without one
          delay,   \* how long the last retry waited
          missed,  \* a tick came while the renewal was under way: it is due again after its reply
          hung,    \* until a renewal has taken too long
          budget   \* until a caller leaves

timers == <<tick, retry, delay, missed, hung, budget>>

Third == WatchdogLease \div 3
CallTimeout == WatchdogLease \div 6
CommandTimeout == WatchdogLease \div 5

\* NextDelay: wait.Backoff between lease/600 and lease/60.
NextDelay(n) ==
    IF n = 0 THEN Max(WatchdogLease \div 600, 1) ELSE Min(2 * n, Max(WatchdogLease \div 60, 1))

StepsInit ==
    /\ Init
    /\ step = [do |-> "Init"]
    /\ dice \in 0..100
    /\ tick = [o \in Owners |-> -1]
    /\ retry = [o \in Owners |-> -1]
    /\ delay = [o \in Owners |-> 0]
    /\ missed = [o \in Owners |-> FALSE]
    /\ hung = [o \in Owners |-> -1]
    /\ budget = [o \in Owners |-> -1]

\* Is reports whether the step is do, and o's.
Is(do, o) == step'.do = do /\ step'.who = o

\* Later returns what a timer is after the step, unless that sets it.
Later(timer) == IF step'.do = "Pass" /\ timer > 0 THEN Max(timer - step'.ticks, 0) ELSE timer

Watched(o) == state[o] = "active" /\ renews[o]

SetTimers ==
    /\ tick' = [o \in Owners |->
         IF ~Watched(o)' THEN -1
         ELSE IF ~Watched(o) \/ Is("Tick", o) THEN Third
         ELSE Later(tick[o])]
    /\ retry' = [o \in Owners |->
         IF ~Watched(o)' \/ Is("Retry", o) THEN -1
         ELSE IF Is("RenewalFails", o) THEN NextDelay(delay[o])
         ELSE IF Is("RenewalReply", o) /\ missed[o] THEN 0
         ELSE Later(retry[o])]
    /\ delay' = [o \in Owners |->
         IF Is("RenewalFails", o) THEN NextDelay(delay[o])
         ELSE IF Is("RenewalReply", o) \/ Is("Acquire", o) THEN 0
         ELSE delay[o]]
    /\ missed' = [o \in Owners |->
         IF Is("Tick", o) THEN renewal[o] # None
         ELSE IF Is("Retry", o) THEN FALSE
         ELSE missed[o]]
    /\ hung' = [o \in Owners |->
         IF renewal'[o] = None THEN -1
         ELSE IF renewal[o] = None THEN CallTimeout
         ELSE Later(hung[o])]
    /\ budget' = [o \in Owners |->
         IF call'[o] = None \/ ~call'[o].waits THEN -1
         ELSE IF call[o] = None THEN CommandTimeout
         ELSE Later(budget[o])]

Expires(o) == state[o] = "active" /\ left[o] <= 0

\* Fires reports whether a timer of o is due, or its process has just continued.
Fires(o) ==
    \/ process[o] = "waking"
    \/ process[o] = "runs" /\ (Expires(o) \/ 0 \in {tick[o], retry[o], hung[o], budget[o]})

\* Timers returns for how long the timers of o still run.
Timers(o) ==
    IF process[o] = "stopped" THEN {}
    ELSE {t \in {tick[o], retry[o], hung[o], budget[o], IF state[o] = "active" THEN left[o] ELSE 0} :
            t > 0}

\* Soonest is how long it is until the next timer fires.
Soonest ==
    LET all == UNION {Timers(o) : o \in Owners} \cup {Third}
    IN  CHOOSE t \in all : \A other \in all : t <= other

Step(do, o) == step' = [do |-> do, who |-> o]

Fired(o) ==
    \/ process[o] # "stopped" /\ Expires(o) /\ Expire(o) /\ Step("Expire", o)
    \/ Wake(o) /\ Step("Wake", o)
    \/ /\ process[o] = "runs" /\ ~Expires(o)
       /\ \/ /\ tick[o] = 0
             /\ IF renewal[o] = None /\ retry[o] < 0 THEN Renew(o) ELSE UNCHANGED vars
             /\ Step("Tick", o)
          \/ tick[o] # 0 /\ retry[o] = 0 /\ Renew(o) /\ Step("Retry", o)
          \/ \E may \in Strays :
               /\ tick[o] # 0 /\ hung[o] = 0
               /\ may \/ renewal[o].at # "sent" \/ dice % 2 = 0
               /\ RenewalFails(o, may)
               /\ step' = [do |-> "RenewalFails", who |-> o, may |-> may]
          \/ budget[o] = 0 /\ GiveUp(o) /\ Step("GiveUp", o)

\* Steady reports whether nothing of o is under way that would have to stop with its process.
Steady(o) == call[o] = None /\ renewal[o] = None /\ retry[o] < 0 /\ Clean(o)

\* Underway reports whether a command is waited for, or may be executed.
Underway == \E o \in Owners : call[o] # None \/ renewal[o] # None \/ stray[o] # None \/ ~Clean(o)

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
         \/ ExecuteRenewal(o) /\ Step("ExecuteRenewal", o)
         \/ RenewalReply(o) /\ Step("RenewalReply", o)
         \/ /\ Seldom
            /\ RenewalFails(o, FALSE)
            /\ step' = [do |-> "RenewalFails", who |-> o, may |-> FALSE]
         \/ CleanUp(o) /\ Step("CleanUp", o)
         \/ ExecuteCleanup(o) /\ Step("ExecuteCleanup", o)
         \/ CleanupReply(o) /\ Step("CleanupReply", o)

StepsNext ==
    /\ IF \E o \in Owners : Fires(o) THEN \E o \in Owners : Fired(o) ELSE Chosen
    /\ SetTimers
    /\ dice' = (dice * 38 + 53) % 101

StepsSpec == StepsInit /\ [][StepsNext]_<<vars, step, dice, timers>>
=============================================================================
