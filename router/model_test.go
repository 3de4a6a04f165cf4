package router_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/integration/model"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// The model leaves a shard exactly when a router does.
func TestModelLeavesShardsAsRoutersDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64Range(0, 4)
		ts := rapid.Int64Range(0, 10)
		r := schemas.Rotation{Rows: n.Draw(rt, "max rows"), Span: time.Duration(ts.Draw(rt, "max span"))}
		frames, rows := n.Draw(rt, "frames"), n.Draw(rt, "rows")
		top, hi := ts.Draw(rt, "top"), ts.Draw(rt, "hi")
		want := router.Full(r, frames, rows, top, hi)
		if got := model.Full(r, frames, rows, top, hi); got != want {
			rt.Fatalf("the model says %q, the router %q", got, want)
		}
	})
}
