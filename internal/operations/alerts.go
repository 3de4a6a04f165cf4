package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

var alertGroup = Param{Name: "group", In: Path, Required: true, Help: "a `GROUP` of rules"}

// Alerts and their rules. They are about all topics: a rule's notification tells what its topic has.
var (
	Alerts = Operation{
		Tool: "alerts", Method: http.MethodGet, Path: "/v1/alerts", Summary: "The alerts that are pending or firing, and how far each topic is evaluated", Right: Right{access.Read, OfAll}, Rows: AllRows, Access: Reads,
		Answers: ok("Alerts"),
	}
	AlertHistory = Operation{
		Tool: "alert_history", Method: http.MethodGet, Path: "/v1/alerts/history", Summary: "When alerts began and ended, the newest first", Right: Right{access.Read, OfAll}, Rows: AllRows, Access: Reads,
		Params: []Param{where, from, to, counts(atMost("how many at most", 1000), 500), cursor}, Answers: ok("AlertHistory"),
	}
	AlertGroups = Operation{
		Tool: "alert_rules", Method: http.MethodGet, Path: "/v1/alerts/rules", Summary: "The groups of rules of alerts", Right: Right{access.Read, OfAll}, Rows: AllRows, Access: Reads,
		Answers: ok("AlertGroups"),
	}
	SetAlertGroup = Operation{
		Method: http.MethodPut, Path: "/v1/alerts/rules/{group}", Summary: "Declare a group of rules, in place of the one of its name", Right: Right{access.Operate, OfAll}, Access: Writes,
		Params: []Param{alertGroup, helped(dryRun, "check the rules and declare nothing")}, Body: sends("AlertGroup"), Answers: ok("AlertGroup"),
	}
	TryAlertGroup = Operation{
		Method: http.MethodPost, Path: "/v1/alerts/rules/{group}/test", Summary: "What a group of rules would have said and recorded of what was accepted since a time, and what the answer leaves out; it declares and records nothing and tells no receiver", Right: Right{access.Operate, OfAll}, Rows: AllRows, Access: Reads,
		Params: []Param{alertGroup, helped(from, "`TIME` from which on what was accepted is evaluated; without it the last hour")}, Body: &Body{Type: "AlertGroup", Private: true}, Answers: ok("AlertTrial"),
	}
	RemoveAlertGroup = Operation{
		Method: http.MethodDelete, Path: "/v1/alerts/rules/{group}", Summary: "Remove a group of rules; its alerts end", Right: Right{access.Operate, OfAll}, Access: Writes,
		Params: []Param{alertGroup}, Answers: []Answer{{Code: http.StatusNoContent}},
	}
)
