package metrics

// Of the timers of each group, from the front TIMERS. Every gateway says the same.
var (
	TimersPending      = gauge("almanac_timers_pending", "Timers that wait for their time or their next attempt.", "topic", "group")
	TimersFiring       = gauge("almanac_timers_firing", "Timers that a dispatcher has claimed and calls.", "topic", "group")
	TimersOverdue      = gauge("almanac_timers_overdue", "Pending timers past their due time.", "topic", "group")
	TimersOldest       = gauge("almanac_timers_oldest_overdue_seconds", "How long the first overdue timer has been due.", "topic", "group")
	TimersGroupPaused  = gauge("almanac_timers_group_paused", "1 where calls of the group are paused.", "topic", "group")
	TimersLargestSlots = gauge("almanac_timers_largest_slot_ratio", "Pending timers of the fullest slot over the mean of all slots: 1 is even.", "topic", "group")
)

// Of one dispatcher: its lanes and its calls. Dispatchers have no timer in common, so the sum over them is the whole.
var (
	DispatcherPending      = gauge("almanac_dispatcher_pending", "Timers of this dispatcher's lanes that wait for their time or their next attempt.", "topic", "group")
	DispatcherBlocked      = gauge("almanac_dispatcher_blocked", "Those of them that are due and find no free place: the dispatcher, their host or their group is at its bound, or the group is paused.", "topic", "group")
	DispatcherOverdue      = gauge("almanac_dispatcher_overdue", "Those of them that are past their due time.", "topic", "group")
	DispatcherOldest       = gauge("almanac_dispatcher_oldest_overdue_seconds", "How long the first of them has been due.", "topic", "group")
	DispatcherLargestSlots = gauge("almanac_dispatcher_largest_slot_ratio", "Pending timers of the fullest slot over the mean of the slots in this dispatcher's lanes: 1 is even.", "topic", "group")
	DispatcherCalls        = counter("almanac_dispatcher_calls_total", "Attempts that ended since the start, by result: done, failed, retry or rescheduled.", "topic", "group", "result")
	DispatcherCallErrors   = counter("almanac_dispatcher_call_errors_total", "Attempts that did not succeed since the start, by what went wrong, such as timeout, status or blocked-address.", "error")
)
