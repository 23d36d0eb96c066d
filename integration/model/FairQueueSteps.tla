--------------------------- MODULE FairQueueSteps ---------------------------
\* FairQueue, with the step that led to each state, and what the command of the step returns and publishes.
\* fairqueue_test.go plays its traces against the scripts.
EXTENDS FairQueue

VARIABLE step

Replied(do, o, w, ends, r) ==
  step' = [do |-> do, who |-> o, window |-> w, ends |-> ends, told |-> r.s.told, holder |-> r.holder, nap |-> r.nap]

Told(do, names, s) == step' = [do |-> do, names |-> names, told |-> s.told]

Only(do, o) == step' = [do |-> do, who |-> o]

StepCome(o, b) ==
  LET w == IF b = 0 THEN Window ELSE b
      ends == IF b = 0 THEN Ever ELSE b
  IN Come(o, b) /\ Replied("Come", o, w, ends, Acquire(Redis, o, TRUE, w, ends))

\* Time goes on until something happens, or by less.
Moments ==
  Ticks \cup {left, turn.ends} \cup {sleep[o] : o \in {x \in Owners : Waits(x)}} \cup {budget[o] : o \in Owners}

\* Somebody asks before the budgets' key expires.
Going == SomebodyWaits \/ \E o \in Owners : pc[o] = "holds"
StepTick(d) == Going /\ d \in 1..(Ever - 1) /\ Tick(d) /\ step' = [do |-> "Tick", ticks |-> d]

\* Names are used again here once nothing is left of them, so that traces go on.
Again(o) ==
  /\ pc[o] \in {"done", "dead"} /\ o \notin late /\ lock # o /\ ~Queued(Redis, o) /\ budget[o] = Ever
  /\ pc' = [pc EXCEPT ![o] = "idle"]
  /\ until' = [until EXCEPT ![o] = Ever] /\ window' = [window EXCEPT ![o] = 0]
  /\ UNCHANGED <<server, ear, sleep, late, faults, history>>

StepsInit == Init /\ step = [do |-> "Init"]

StepsNext ==
  \/ \E o \in Waiters :
       \/ \E b \in Budgets : StepCome(o, b)
       \/ Try(o) /\ Replied("Try", o, Window, Ever, Acquire(Redis, o, FALSE, Window, Ever))
       \/ Ask(o) /\ Replied("Ask", o, window[o], until[o], Acquire(Redis, o, TRUE, window[o], until[o]))
       \/ Listen(o) /\ Only("Listen", o)
       \/ Renew(o) /\ Only("Renew", o)
       \/ Unlock(o) /\ Told("Unlock", {o}, Release(Redis, {o}))
       \/ GiveUp(o) /\ Only("GiveUp", o)
       \/ CleanUp(o) /\ Told("CleanUp", Leaving(o), Release(Redis, Leaving(o)))
       \/ ExecuteLate(o) /\ Replied("ExecuteLate", o, window[o], until[o], Acquire(Redis, o, TRUE, window[o], until[o]))
       \/ Cancel(o) /\ Only("Cancel", o)
       \/ Lose(o) /\ Only("Lose", o)
       \/ Cut(o) /\ Only("Cut", o)
       \/ Resume(o) /\ Only("Resume", o)
  \/ \E j \in Javas :
       \/ JavaCome(j) /\ Only("JavaCome", j)
       \/ JavaAsk(j) /\ Only("JavaAsk", j)
       \/ JavaUnlock(j) /\ Told("JavaUnlock", {j}, JavaRelease(Redis))
  \/ \E o \in Owners :
       \/ Leave(o) /\ Only(IF o \in Javas THEN "JavaLeave" ELSE "Leave", o)
       \/ Die(o) /\ Only("Die", o)
       \/ Hang(o) /\ Only("Hang", o)
  \/ \E o \in Owners : Again(o) /\ Only("Again", o)
  \/ \E d \in Moments : StepTick(d)

StepsSpec == StepsInit /\ [][StepsNext]_<<vars, step>>
=============================================================================
