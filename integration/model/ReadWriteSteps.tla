--------------------------- MODULE ReadWriteSteps ---------------------------
\* ReadWrite, with the step that led to each state: what readwrite_test.go does to the real lock, and what the scripts must reply and announce.
EXTENDS ReadWrite

VARIABLE step

Does(do, o) == step' = [do |-> do, who |-> o]

Runs(do, q) ==
  LET got == Run(redis, q)
  IN step' = [do |-> do, request |-> q, status |-> got.status, told |-> got.told, nap |-> got.nap]

StepsInit == Init /\ step = [do |-> "Init"]

StepsNext ==
  \/ \E o \in Owners :
       \/ AskRead(o) /\ Does("AskRead", o)
       \/ AskWrite(o) /\ Does("AskWrite", o)
       \/ Reenter(o) /\ Does("Reenter", o)
       \/ Unread(o) /\ Does("Unread", o)
       \/ Unwrite(o) /\ Does("Unwrite", o)
       \/ Execute(o) /\ Runs("Execute", Request(o))
       \/ GiveUp(o) /\ Does("GiveUp", o)
       \/ Retry(o) /\ Does("Retry", o)
       \/ Renew(o) /\ step' = [do |-> "Renew", who |-> o, name |-> read[o].name, lease |-> Longest(Leases)]
       \/ Expire(o, "write") /\ Does("Expire", o)
       \/ Expire(o, "read") /\ Does("Expire", o)
  \/ \E q \in late : RunLate(q) /\ Runs("ExecuteLate", q)
  \/ \E q \in late : Confirm(q) /\ Runs("ConfirmLate", q)
  \/ Vanish /\ step' = [do |-> "Vanish"]
  \/ \E cu \in due :
       /\ SendCleanUp(cu)
       /\ IF Held(cu) /\ Rule("cleanUpUnheld") THEN step' = [do |-> "Spare"]
          ELSE Runs("CleanUp", Release(cu.who, IF cu.mode = "read" THEN "unread" ELSE "unwrite", cu.name))
  \/ \E cu \in due : LoseCleanUp(cu) /\ step' = [do |-> "CleanUpUnanswered", who |-> cu.who]
  \/ \E d \in Ticks : Tick(d) /\ step' = [do |-> "Tick", ticks |-> d]

StepsSpec == StepsInit /\ [][StepsNext]_<<vars, step>>
=============================================================================
