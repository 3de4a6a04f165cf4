package watchdog

import (
	"io"
	"net/http"
	"regexp"
)

// On a machine that is short of processors a server takes seconds to begin a statement, and says meanwhile that it does
// not run it. So what only reads is sent once more. One whose query id was given is not: who gave it asks by it what
// became of it.

// aRead begins a statement that changes nothing. What follows WITH may be an INSERT.
var aRead = regexp.MustCompile(`(?i)^\s*SELECT\s`)

// beginBytes are read of a body: more than aRead needs, leading lines included.
const beginBytes = 64

// again returns the request that is to be sent in place of one whose server vanished, or nil where it may have changed something.
func again(req *http.Request) *http.Request {
	params := req.URL.Query()
	if params.Has(ParamQueryID) || req.GetBody == nil || req.Context().Err() != nil {
		return nil
	}
	begin := []byte(params.Get(ParamQuery))
	if len(begin) == 0 {
		body, err := req.GetBody()
		if err != nil {
			return nil
		}
		begin, _ = io.ReadAll(io.LimitReader(body, beginBytes))
		_ = body.Close()
	}
	if !aRead.Match(begin) {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	once := req.Clone(req.Context())
	once.Body = body
	return once
}
