package derived

import (
	"os"
	"strconv"
	"testing"
)

// seedsEnv is how many schedules are played.
const seedsEnv = "ALMANAC_MODEL_SEEDS"

func seeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv(seedsEnv), 10, 32); err == nil && n > 0 {
		return n
	}
	return 500
}

// Whatever happens between any two statements, a report is what the rows say.
func TestDerived(t *testing.T) {
	t.Parallel()
	for seed := range seeds() {
		if err := Run(seed, Mutants{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Without any one guard some schedule makes a wrong bill.
func TestMutants(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Mutants{
		"a mark is taken back":                     {MarkTakenBack: true},
		"a fill without its assertion":             {FillUnasserted: true, CountsIgnored: true},
		"a position is skipped":                    {PositionSkipped: true},
		"a position of what was dropped":           {EpochUnasserted: true},
		"a position of other rows":                 {RowsUncounted: true},
		"a drop that waits for no statement":       {DropUnwaited: true},
		"the position before the marks":            {PositionFirst: true},
		"a roll-up is believed after an erasure":   {ErasureBelieved: true},
		"the first event of other shards' repeats": {FirstForgotten: true},
		"sums that left out fewer than are marked": {MarksIgnored: true},
		"sums while rows wait to be examined":      {UnquietSums: true},
		"the sums of a dropped shard":              {LastSumsDropped: true},
		"the mark of a copy of a dropped event":    {LastMarkDropped: true},
		"a drop that retention does not see":       {DropUnleased: true},
		"shards that went before the lease":        {GoneUnleased: true},
		"rows dropped while copies are not known":  {OthersUnseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := wrongBill(m); err != nil {
				t.Log(err)
				return
			}
			t.Error("no schedule shows it")
		})
	}
}

// wrongBill is what the first schedule that shows mutants shows; nil when none does.
func wrongBill(m Mutants) error {
	for seed := range seeds() {
		if err := Run(seed, m); err != nil {
			return err
		}
	}
	return nil
}

// Guards that others cover: without one of them alone no bill is wrong, because sums are
// believed only when they hold as many rows as there are, and left out as many as are marked.
func TestCovered(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Mutants{
		"a fill of rows that were not examined": {UnexaminedFilled: true},
		"counts that are not compared":          {CountsIgnored: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := wrongBill(m); err != nil {
				t.Error(err)
			}
		})
	}
}
