package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

// MaxLetters bounds a list of dead letters.
const MaxLetters = 1000

const usualLetters = 100

const letterExample = "4711@2026-11-20T12:00:00.123456789Z"

var (
	ofReason = Param{Name: "reason", Help: "only letters with this `REASON`"}
	resolved = append(ok("Settled"), accepted("Job"))
)

// Dead letters.
var (
	DeadLetters = Operation{
		Tool: "dead_letters", Method: http.MethodGet, Path: "/v1/dead", Summary: "Dead letters", Right: Right{Action: access.Operate}, Access: Reads,
		Params: []Param{ofTopic, ofReason, counts(atMost("how many", MaxLetters), usualLetters)}, Answers: ok("DeadLetters"),
	}
	// DeadReasons is GET /v1/dead/reasons.
	DeadReasons = Operation{
		Tool: "dead_reasons", Method: http.MethodGet, Path: "/v1/dead/reasons", Summary: "How many dead letters there are, by topic and reason", Right: Right{Action: access.Operate}, Access: Reads,
		Params: []Param{ofTopic}, Answers: ok("DeadReasons"),
	}
	DeadLetter = Operation{
		Tool: "dead_letter", Method: http.MethodGet, Path: "/v1/dead/{seq}", Summary: "One dead letter", Right: Right{access.Operate, OfSome}, Access: Reads,
		Params:  []Param{{Name: "seq", In: Path, Required: true, Help: "the id of a dead letter: its number and time. A number alone is what has it now"}},
		Answers: ok("DeadLetter"),
	}
	RetryLetters = Operation{
		Method: http.MethodPost, Path: "/v1/dead/retry", Summary: "Send dead letters again", Right: Right{Action: access.Operate}, Access: Writes,
		Params: []Param{ofTopic, ofReason, dryRun, {Name: "seq", Example: letterExample, Help: "only the dead letter `NUMBER@TIME`, as dead ls prints it, or of that number alone"}}, Answers: resolved,
	}
	DropLetters = Operation{
		Method: http.MethodPost, Path: "/v1/dead/drop", Summary: "Drop dead letters", Right: Right{Action: access.Operate}, Access: Writes,
		Params: []Param{ofTopic, ofReason, dryRun, {Name: "seq", Example: letterExample, Help: "only the dead letter `NUMBER@TIME`, as dead ls prints it"}}, Answers: resolved,
	}
)
