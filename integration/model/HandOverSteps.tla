---------------------------- MODULE HandOverSteps ----------------------------
\* HandOver, with the step that led to each state. handover_test.go plays its traces against the
\* scripts and the queues of waiters.
\*
\* In a random trace each step is as likely as any other, and most would be disruptions. TracesSpec
\* has a calm before each, whose length depends on the trace and on the number of faults.

EXTENDS HandOver

VARIABLES step, calm

Do(do) == step' = [do |-> do]
DoFor(do, who) == step' = [do |-> do, who |-> who]
DoIf(do, who, flag) == step' = [do |-> do, who |-> who, flag |-> flag]
DoWith(do, who, ticket) == step' = [do |-> do, who |-> who, ticket |-> ticket]

StepsInit == Init /\ step = [do |-> "Init"]

\* A waiter asks instead of accepting a grant.
Declines(w) == waiter[w].state = "Granted" /\ Trusted(w, waiter[w].given)

Calm ==
  \/ \E w \in Waiters :
       \/ Join(w) /\ DoFor("Join", w)
       \/ ~Declines(w) /\ Ask(w) /\ DoFor("Ask", w)
       \/ ExecuteAsk(w) /\ DoFor("ExecuteAsk", w)
       \/ Acquire(w) /\ DoFor("Acquire", w)
       \/ AcquireTooLate(w) /\ DoFor("AcquireTooLate", w)
       \/ Refuse(w) /\ DoFor("Refuse", w)
       \/ Accept(w) /\ DoFor("Accept", w)
       \/ \E b \in BOOLEAN :
            \/ Release(w, b) /\ DoIf("Release", w, b)
            \/ ExecuteRelease(w, b) /\ DoIf("ExecuteRelease", w, b)
            \/ CleanUp(w, b) /\ DoIf("CleanUp", w, b)
       \/ Settle(w) /\ DoFor("Settle", w)
       \/ Lose(w) /\ DoFor("Lose", w)
       \/ GiveUpCleanup(w) /\ DoFor("GiveUpCleanup", w)
       \/ \E t \in Told(w) : DeliverTicket(w, t) /\ DoWith("Deliver", w, t)
  \/ \E p \in Processes :
       \/ Hear(p) /\ DoFor("Hear", p)
       \/ Subscribe(p) /\ DoFor("Subscribe", p)
  \/ ExpireGhost /\ Do("ExpireGhost")
  \/ JavaAsks /\ Do("JavaAsks")
  \/ JavaReleases /\ Do("JavaReleases")

Disruption ==
  \/ \E w \in Waiters :
       \/ Declines(w) /\ Ask(w) /\ DoFor("Ask", w)
       \/ LoseReply(w) /\ DoFor("LoseReply", w)
       \/ Abandon(w) /\ DoFor("Abandon", w)
       \/ Leave(w) /\ DoFor("Leave", w)
       \/ LateRelease(w) /\ DoFor("LateRelease", w)
       \/ LateAsk(w) /\ DoFor("LateAsk", w)
       \/ LoseSettlement(w) /\ DoFor("LoseSettlement", w)
       \/ AbandonRelease(w) /\ DoFor("AbandonRelease", w)
       \/ \E t \in Told(w) : LoseTicket(w, t) /\ DoWith("LoseMessage", w, t)
  \/ \E p \in Processes :
       \/ Disconnect(p) /\ DoFor("Disconnect", p)
       \/ Die(p) /\ DoFor("Die", p)
  \/ Expire /\ Do("Expire")
  \/ ExpireWaiters /\ Do("ExpireWaiters")
  \/ JavaWaits /\ Do("JavaWaits")

After(of) == [left |-> (of * 7 + world.faults * 11) % 20, of |-> of]

TracesNext ==
  \/ Calm /\ calm' = [calm EXCEPT !.left = IF @ = 0 THEN 0 ELSE @ - 1]
  \/ calm.left = 0 /\ Disruption /\ calm' = After(calm.of)

TracesSpec ==
  StepsInit /\ calm \in {After(of) : of \in 0..59} /\ [][TracesNext]_<<vars, step, calm>>

=============================================================================
