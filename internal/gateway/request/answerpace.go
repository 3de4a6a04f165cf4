package request

import (
	"net/http"
	"time"
)

// Bounds of the time that a client takes for an answer. Only what a write waits for its client counts, not what the answer takes to
// come about. A client of minRate waits seconds between two writes, for the kernel takes megabytes at a time.
const (
	// answerStall is how long one write may wait for a client that takes nothing.
	answerStall = 30 * time.Second
	// answerBehind is how long a client may be behind minRate. What it is ahead of that is not credited to it: buffers of the
	// kernel take the first megabytes of any answer at once.
	answerBehind = time.Minute
	// answerPiece is what is written at once.
	answerPiece = 64 << 10
)

// pacedAnswer writes an answer within the bounds above. Slow readers hold slots, and statements of ClickHouse, that others need.
type pacedAnswer struct {
	http.ResponseWriter
	rc     *http.ResponseController
	until  time.Time // when the whole answer must be taken; zero: it streams
	behind time.Duration
}

func paceAnswer(w http.ResponseWriter, most time.Duration) *pacedAnswer {
	return &pacedAnswer{ResponseWriter: w, rc: http.NewResponseController(w), until: time.Now().Add(most)}
}

// Streams says that an answer may take as long as there is something to answer. Its client must keep the pace all the same.
func Streams(w http.ResponseWriter) {
	for {
		switch at := w.(type) {
		case *pacedAnswer:
			at.until = time.Time{}
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = at.Unwrap()
		default: // tests have servers without a pace
			return
		}
	}
}

// Write implements io.Writer.
func (p *pacedAnswer) Write(b []byte) (n int, err error) {
	for {
		piece := b[n:min(len(b), n+answerPiece)]
		err = p.wait(func() error {
			wrote, err := p.ResponseWriter.Write(piece)
			n += wrote
			p.behind -= time.Duration(wrote) * time.Second / minRate
			return err
		})
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError is for http.ResponseController.
func (p *pacedAnswer) FlushError() error { return p.wait(p.rc.Flush) }

// Unwrap is for http.ResponseController.
func (p *pacedAnswer) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// wait counts what f waits for the client.
func (p *pacedAnswer) wait(f func() error) error {
	p.bound()
	began := time.Now()
	err := f()
	p.behind = max(0, p.behind+time.Since(began))
	return err
}

// bound sets the deadline of the next write.
func (p *pacedAnswer) bound() {
	at := time.Now().Add(min(answerStall, answerBehind-p.behind))
	if !p.until.IsZero() && p.until.Before(at) {
		at = p.until
	}
	_ = p.rc.SetWriteDeadline(at) // tests have writers that have none
}
