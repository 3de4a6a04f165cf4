package request

// Endpoints at which tails are followed, as words for counts.
const (
	TailsOfAPI  = "v1"   // GET /v1/topics/TOPIC/tail
	TailsOfLoki = "loki" // GET /loki/api/v1/tail
)

// TailEndpoints are all of them.
var TailEndpoints = []string{TailsOfAPI, TailsOfLoki}

// OnTail hears that a tail is followed from now on, at which endpoint. What it returns is called once, when the tail has ended.
type OnTail func(endpoint string) (ended func())

// Followed calls on, which may be nil.
func (on OnTail) Followed(endpoint string) (ended func()) {
	if on == nil {
		return func() {}
	}
	return on(endpoint)
}
