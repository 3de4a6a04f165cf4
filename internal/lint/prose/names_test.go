package main

import "testing"

func TestRetiredIn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"settledAll": "settle", "Settles": "settle", "NoSettleTime": "settle", "vandals": "vandal", "Tallies": "tally", "judging": "judge", "minCallRoom": "room",
		"ClickHouseHTTP": "", "resettable": "", "rooms": "room", "mushroom": "", "TestFrontDoor": "", "amended": "", "dashboards": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, instead := retiredIn(name); got != want || (got != "") != (instead != "") {
				t.Errorf("%q, %q, expected %q", got, instead, want)
			}
		})
	}
}
