package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A process whose user of NATS, or account of ClickHouse, lacks a right says so in the registry, so that the operator's doctor names it. It does not open the
// registry to say it: the right that it lacks may be one that this takes.

const (
	// lackingPrefix begins the names of these entries, among those that every part may write.
	lackingPrefix = "lacking-"
	// LackingLasts is when NATS lets go of an entry that was not renewed.
	LackingLasts = 15 * time.Second
	// maxLacks is how many rights an entry names.
	maxLacks = 10
)

// Lacking is a process whose user lacks rights.
type Lacking struct {
	// Part is the part, and the user of NATS whose rights it needs; User is the one that it connects as.
	Part string `json:"part"`
	User string `json:"user"`
	Host string `json:"host"`
	PID  int    `json:"pid"`
	// Needs is the account of ClickHouse whose rights in Database it needs; empty: User is one of NATS.
	Needs    string `json:"needs,omitempty"`
	Database string `json:"database,omitempty"`
	// Lacks are the rights: of NATS each as a line of the server's configuration, of ClickHouse as GRANT takes it.
	Lacks []string `json:"lacks"`
}

func (l Lacking) String() string { return l.Part + ", " + process(l.PID, l.Host) }

// TellLacking stores what this process lacks under an id of its own, until LackingLasts passed. Without rights in the list it
// takes back what was told.
func TellLacking(ctx context.Context, nc *nats.Conn, id string, l Lacking) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	lasts := LackingLasts
	if len(l.Lacks) == 0 {
		lasts = streams.Expiring
	}
	if more := len(l.Lacks) - maxLacks; more > 0 {
		l.Lacks = append(slices.Clone(l.Lacks[:maxLacks]), fmt.Sprintf("%d more", more))
	}
	l.Host, _ = os.Hostname() // for people: empty is possible
	l.PID = os.Getpid()
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, lackingPrefix+id)), data, jetstream.WithMsgTTL(lasts))
	return err
}

// ListLacking lists the processes that say that their users lack rights.
func ListLacking(ctx context.Context, js jetstream.JetStream) (all []Lacking, err error) {
	prefix := schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, lackingPrefix))
	err = streams.Latest(ctx, js, schemas.KVStream, schemas.KVSubject(schemas.LeaseKeys(schemas.RoleProbe)), func(m *streams.Message) error {
		var l Lacking
		if strings.HasPrefix(m.Subject, prefix) && json.Unmarshal(m.Data, &l) == nil && len(l.Lacks) > 0 {
			all = append(all, l)
		}
		return nil
	})
	return all, err
}
