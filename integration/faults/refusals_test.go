package faults

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// refused is what a ClickHouse says that does not want an insert now.
func refused(code int, text string) []byte {
	body := fmt.Sprintf("Code: %d. DB::Exception: %s", code, text)
	return fmt.Appendf(nil, "HTTP/1.1 500 Internal Server Error\r\nX-ClickHouse-Exception-Code: %d\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		code, len(body), body)
}

// Rows 18 and 37: ClickHouse says for a while that it has too many parts, too little memory, or that the password is wrong;
// NATS, that no login is allowed. Sinks, routers and producers wait, and go on by themselves.
func TestRefusals(t *testing.T) {
	t.Parallel()
	Seed(t)
	h := Build(t, Plan{Proxied: true, Writers: []Writer{{Rate: 1500}, {Rate: 1500}}})
	h.StartWriters()
	flows(t, h)
	var times Times
	wait := func(name string) {
		t.Helper()
		took, err := h.Flows(t.Context(), time.Now())
		if err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		times.Add(name, took)
	}
	// The real thing: the table takes no insert while it has a part.
	h.exec(t, "ALTER TABLE %s MODIFY SETTING parts_to_delay_insert = 1, parts_to_throw_insert = 1", Topic)
	h.nothingComes(t)
	h.exec(t, "ALTER TABLE %s RESET SETTING parts_to_delay_insert, parts_to_throw_insert", Topic)
	wait("252, too many parts")
	for _, c := range []struct {
		name string
		link *Proxy
		says []byte
	}{
		{"241, memory limit", h.InsertLink, refused(241, "(total) memory limit exceeded. (MEMORY_LIMIT_EXCEEDED)")},
		{"516, wrong password", h.InsertLink, refused(516, "almanac: Authentication failed. (AUTHENTICATION_FAILED)")},
		{"authorization violation, sinks", h.SinkLink, []byte(unauthorized)},
		{"authorization violation, routers", h.RouterLink, []byte(unauthorized)},
		{"authorization violation, producers", h.WriterLink, []byte(unauthorized)},
	} {
		c.link.Answer(c.says)
		h.nothingComes(t)
		c.link.Heal()
		wait(c.name)
	}
	h.Prove(2 * time.Minute)
	t.Logf("from the end of the refusals until events flow:\n%s", &times)
}

// unauthorized is how a NATS server greets who may not come in.
const unauthorized = "INFO {\"server_id\":\"x\",\"version\":\"2.15.2\",\"proto\":1,\"headers\":true,\"auth_required\":true,\"max_payload\":1048576}\r\n" +
	"-ERR 'Authorization Violation'\r\n"

// nothingComes waits until no event that was logged in the last three seconds is in ClickHouse.
func (h *Cluster) nothingComes(t *testing.T) {
	t.Helper()
	await(t, startWait, func(ctx context.Context) error {
		n, err := h.SQL.Number(ctx, "SELECT count() FROM %s WHERE ts >= now64(9) - INTERVAL 3 SECOND", Topic)
		if err == nil && n > 0 {
			err = fmt.Errorf("%d events came through", n)
		}
		return err
	})
}

// Row 9: a sink freezes between the header of an insert and the end of its data. ClickHouse gives the insert up, another
// sink takes the shard, and the first one wakes up in the middle of its body.
func TestFrozenInsert(t *testing.T) {
	t.Parallel()
	_, rnd := Seed(t)
	h := Build(t, Plan{Proxied: true, Writers: []Writer{{Rate: 3000}, {Rate: 3000}}})
	h.StartWriters()
	flows(t, h)
	var times Times
	for range 2 * Rounds(t) {
		frozen := h.Sinks[0]
		done := make(chan struct{})
		h.InsertLink.FreezeAfter(4000+rnd.IntN(100_000), func() { frozen.Stop(); close(done) })
		await(t, startWait, func(context.Context) error {
			if !isDone(done) {
				return fmt.Errorf("not so many bytes were inserted")
			}
			return nil
		})
		began := time.Now()
		other := h.part(Spec{Role: RoleSink, Name: "heir", NATS: frozen.Spec.NATS, ClickHouse: frozen.Spec.ClickHouse, Linger: h.Plan.Linger, Housekeeping: time.Second})
		h.start(other)
		took, err := h.Flows(t.Context(), began)
		if err != nil {
			t.Fatalf("a sink is frozen in the middle of an insert, and no other sink goes on: %v\n%s", err, other.Words())
		}
		times.Add("taken over from a sink frozen mid-insert", took)
		h.InsertLink.Heal()
		frozen.Continue()
		times.Add("flows after it woke up", flows(t, h))
		other.Kill()
		flows(t, h)
	}
	h.Prove(2 * time.Minute)
	t.Logf("\n%s", &times)
}
