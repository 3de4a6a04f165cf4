package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

var (
	timerTopic = Param{Name: "topic", Default: schemas.DefaultTimerTopic, Help: "`TOPIC` of kind timer"}
	inGroup    = Param{Name: "group", In: Path, Required: true, Help: "a `GROUP` of timers"}
	timerID    = Param{Name: "id", In: Path, Required: true, Help: "the id of a timer"}
	timerMatch = Param{Name: "If-Match", In: Header, Help: "the ETag that the timer must have: its revision"}
	ofTimer    = []Param{inGroup, timerID, timerTopic}
	ofGroup    = []Param{inGroup, timerTopic}
	oneTimer   = Answer{Code: http.StatusOK, Type: "Timer", Headers: etag}
	changed    = Answer{Code: http.StatusOK, Text: "The timer; without the right to read it what became of it", Type: "Timer", Or: "TimerChanged", Headers: etag}
	newTimer   = Answer{Code: http.StatusCreated, Text: changed.Text, Type: "Timer", Or: "TimerChanged", Headers: etag}
	conflict   = []int{http.StatusConflict}
	states     = texts([]timer.State{timer.StatePending, timer.StateFiring, timer.StateDone, timer.StateFailed, timer.StateCancelled})
)

// Timers and their groups.
var (
	TimerGroups = Operation{
		Tool: "timer_groups", Method: http.MethodGet, Path: "/v1/timers", Summary: "The groups of timers, and how their timers are", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: []Param{timerTopic}, Answers: ok("TimerGroups"),
	}
	Timers = Operation{
		Tool: "timers", Method: http.MethodGet, Path: "/v1/timers/{group}", Summary: "Timers of a group that are in the front, by due time", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: []Param{
			inGroup, timerTopic,
			{Name: "state", Words: states, Help: "only timers in this `STATE`"},
			{Name: "due_before", Kind: Time, Help: "only timers due before this `TIME`: RFC 3339 or +1h"},
			counts(atMost("how many timers", timer.MaxPage), timer.DefaultPage), cursor,
			{Name: "slot", Kind: Number, Most: schemas.MaxTimerSlots - 1, Help: "only timers of this `SLOT`: CRC-32 (IEEE) of the id modulo the slots of the group; below that number"},
		},
		Answers: ok("Timers"),
	}
	CreateTimer = Operation{
		Method: http.MethodPost, Path: "/v1/timers/{group}", Summary: "Create a timer; the same content again is the same timer", Right: Right{Action: access.Change}, Access: Writes,
		Params: ofGroup, Body: sends("TimerRequest"), Answers: []Answer{changed, newTimer}, Refused: conflict,
	}
	TimerGroup = Operation{
		Method: http.MethodGet, Path: "/v1/timers/{group}/config", Summary: "A group's settings", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: ofGroup, Answers: ok("TimerGroup"),
	}
	SetTimerGroup = Operation{
		Method: http.MethodPut, Path: "/v1/timers/{group}/config", Summary: "Declare a group, or replace its settings; its slots are frozen", Right: Right{Action: access.Operate}, Access: Writes,
		Params: ofGroup, Body: sends("TimerGroupRequest"), Answers: append(ok("TimerGroup"), Answer{Code: http.StatusCreated, Type: "TimerGroup"}), Refused: conflict,
	}
	Timer = Operation{
		Tool: "timer", Method: http.MethodGet, Path: "/v1/timers/{group}/{id}", Summary: "One timer", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: ofTimer, Answers: []Answer{oneTimer},
	}
	UpdateTimer = Operation{
		Method: http.MethodPatch, Path: "/v1/timers/{group}/{id}", Summary: "Change a pending timer", Right: Right{Action: access.Change}, Access: ReadsAndWrites,
		Params: append([]Param{timerMatch}, ofTimer...), Body: &Body{Type: "TimerRequest", Private: true}, Answers: []Answer{changed},
		Refused: []int{http.StatusConflict, http.StatusPreconditionFailed},
	}
	DeleteTimer = Operation{
		Method: http.MethodDelete, Path: "/v1/timers/{group}/{id}", Summary: "Cancel a timer; 202 where it is being called at this moment", Right: Right{Action: access.Change}, Access: Writes,
		Params: append([]Param{timerMatch}, ofTimer...), Answers: []Answer{accepted("InFlight"), {Code: http.StatusNoContent}},
		Refused: []int{http.StatusConflict, http.StatusPreconditionFailed},
	}
	FireTimer = Operation{
		Method: http.MethodPost, Path: "/v1/timers/{group}/{id}/fire", Summary: "Make a pending timer due now", Right: Right{Action: access.Change}, Access: ReadsAndWrites,
		Params: ofTimer, Answers: []Answer{changed}, Refused: conflict,
	}
	RetryTimer = Operation{
		Method: http.MethodPost, Path: "/v1/timers/{group}/{id}/retry", Summary: "Make a failed timer pending again", Right: Right{Action: access.Change}, Access: ReadsAndWrites,
		Params: ofTimer, Answers: []Answer{changed}, Refused: conflict,
	}
	TimerHistory = Operation{
		Tool: "timer_history", Method: http.MethodGet, Path: "/v1/timers/{group}/{id}/history", Summary: "Every transition of a timer, oldest first", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: ofTimer, Answers: ok("Timers"),
	}
)
