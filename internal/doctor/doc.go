// Package doctor checks that the parts of an Almanac answer, and says what to do where
// they do not. Its findings are data: the command prints them.
//
// # Model
//
// Run makes the checks in the order in which each makes sense, and leaves out those whose
// part did not answer. A finding is OK, Warn or Fail, with a next step where there is one.
//
//	process ─▶ NATS servers ─▶ NATS, its account ─▶ streams, promise, registry ─▶ members, their accounts ─▶ timers ─▶ alerts
//	ClickHouse ─▶ retention (of the registry, also while ClickHouse is away)
//	    └─▶ its accounts ─▶ engine, disks, files, SQL account ─▶ lag, tables, dead letters ─▶ rebuilds ─▶
//	        cold volume ─▶ lost ─▶ fields ─▶ documents ─▶ meters, copies ─▶ receivers of alerts
//	producers (follows from the streams), disk
//
// It changes nothing, but for one table that the SQL account must be refused, and a trial
// message that NATS must store.
//
// # Who is authoritative
//
// Each part for itself. How full the streams are says what producers do now.
//
// # Failures
//
// What cannot be reached is a finding, never an error. Both servers and the process are asked at once, and a process that runs says since
// when one is away. A server that is cut off or stands still is found within 3 s. All checks together take 30 s at most.
package doctor
