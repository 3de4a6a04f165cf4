package schemas

import (
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// A server alone that vanished without a word is found after two unanswered pings, within 9 s; the client's own
	// default would take six minutes. It also answers late while its disk is slow, and there is no other to turn to.
	pingAlone, pingsAlone = 3 * time.Second, 2
	// One of several is left after three unanswered pings, within 4 s: less than the others need to elect. Where a write is not taken either it
	// takes up to writeSeveral longer.
	pingSeveral, pingsSeveral = time.Second, 3
	// A write that several servers' one does not take holds back all others of the connection, its pings too. The
	// client's own default is a minute.
	writeSeveral = 2500 * time.Millisecond
)

// Elects reports whether the servers of a connection elect leaders: there are several.
func Elects(nc *nats.Conn) bool {
	return nc.ConnectedClusterName() != "" || len(nc.Servers()) > 1 // the first is not known between two connections
}

// Election is how long an election may take. Two followed each other within 10 s when two servers died.
const Election = 10 * time.Second

// Liveness is an option of a connection. It says how soon a server that does not answer is left: one of several that
// the URL names is left sooner than one alone. A write that is not taken in time ends the connection too, since half
// a message may have gone out.
func Liveness(o *nats.Options) error {
	o.PingInterval, o.MaxPingsOut, o.ReconnectOnFlusherError = pingAlone, pingsAlone, true
	if len(o.Servers) > 1 {
		o.PingInterval, o.MaxPingsOut, o.FlusherTimeout = pingSeveral, pingsSeveral, writeSeveral
	}
	return nil
}
