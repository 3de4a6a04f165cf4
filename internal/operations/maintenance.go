package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

// Proofs, and long works, which are jobs.
var (
	Proof = Operation{
		Tool: "verify", Method: http.MethodGet, Path: "/v1/verify", Summary: "The last proof; 404 no_proof where this gateway has made none", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: []Param{ofTopic}, Answers: ok("Proof"),
	}
	Verify = Operation{
		Method: http.MethodPost, Path: "/v1/verify", Summary: "A proof that is a minute old at most", Right: Right{Action: access.Operate},
		Params: []Param{ofTopic, {Name: "job", Kind: Switch, Help: "answer at once with a job that makes the proof, and says how far it is"}}, Answers: append(ok("Proof"), accepted("Job")),
	}
	Erasures = Operation{
		Method: http.MethodGet, Path: "/v1/erasures", Summary: "The erasures", Right: Right{Action: access.Operate}, Access: Reads,
		Params: []Param{ofTopic}, Answers: ok("Erasures"),
	}
	Erase = Operation{
		Method: http.MethodPost, Path: "/v1/erasures", Summary: "Erase events", Right: Right{access.Operate, OfSome}, Access: ReadsAndWrites,
		Params: []Param{helped(dryRun, "count what would go, and change nothing")}, Body: &Body{Type: "EraseRequest", Private: true}, Answers: append(ok("ErasurePlan"), accepted("Job")),
	}
	ShowErasure = Operation{
		Method: http.MethodGet, Path: "/v1/erasures/{id}", Summary: "An erasure and its proof", Right: Right{access.Operate, OfSome}, Access: Reads,
		Params: []Param{erasureID}, Answers: ok("ErasureProof"),
	}
	ResumeErasure = Operation{
		Method: http.MethodPost, Path: "/v1/erasures/{id}/resume", Summary: "Carry an erasure on", Right: Right{access.Operate, OfSome}, Access: Writes,
		Params: []Param{erasureID, purge}, Answers: []Answer{accepted("Job")},
	}
	Replay = Operation{
		Method: http.MethodPost, Path: "/v1/replays", Summary: "Replay events into a topic or a subject", Right: Right{access.Operate, OfSome}, Access: ReadsAndWrites,
		Body: sends("ReplayRequest"), Answers: []Answer{accepted("Job")},
	}
	Jobs = Operation{
		Method: http.MethodGet, Path: "/v1/jobs", Summary: "The jobs", Right: Right{Action: access.Operate}, Access: Reads,
		Params:  []Param{{Name: "kind", Kind: Word, Words: []string{"", "erasure", "replay", "dead_letters", "verify"}, Help: "only jobs of this `KIND`"}, ofTopic},
		Answers: ok("Jobs"),
	}
	Job = Operation{
		Method: http.MethodGet, Path: "/v1/jobs/{id}", Summary: "One job", Right: Right{access.Operate, OfSome}, Access: Reads,
		Params: []Param{jobID}, Answers: ok("Job"),
	}
	CancelJob = Operation{
		Method: http.MethodDelete, Path: "/v1/jobs/{id}", Summary: "Cancel a job", Right: Right{access.Operate, OfSome}, Access: Writes,
		Params: []Param{jobID}, Answers: ok("Job"), Refused: []int{http.StatusConflict},
	}
)

var (
	erasureID = Param{Name: "id", In: Path, Required: true, Help: "the id of an `ERASURE`"}
	jobID     = Param{Name: "id", In: Path, Required: true, Help: "the id of a `JOB`"}
)
