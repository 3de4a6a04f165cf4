package model

// Sight is something worth counting that is not a fault: that a guard was needed.
type Sight int

// The sights.
const (
	Sends Sight = iota
	Resends
	Accepted
	Routed
	RefusedByMsgID
	RefusedByWindow
	KeptAsStale
	Refused
	LostLane
	LateCommits
	Groups
	GroupsRefused
	Rotations
	Seals
	Closes
	TokensMet
	TokenHeld
	InsertHeadMoved
	InsertTooSlow
	Purged
	Reads
	ReadsTooSlow
	GapsNamed
	CutsMet
	TailersEnded
	TailsKnown
	ShortAnswers
	LanesStopped
	LettersKnown
	RoutedToTheSame
	sightKinds
)

var sights = [sightKinds]string{
	Sends:           "frames sent",
	Resends:         "… sent again",
	Accepted:        "frames accepted",
	Routed:          "messages routed",
	RefusedByMsgID:  "duplicates refused by Msg-Id",
	RefusedByWindow: "duplicates refused beyond it",
	KeptAsStale:     "duplicates kept as dead letters",
	Refused:         "poison kept as dead letters",
	LostLane:        "commits refused: another owns the lane",
	LateCommits:     "batches committed after their router gave up",
	Groups:          "groups of several lanes committed",
	GroupsRefused:   "groups refused, and sent again lane by lane",
	Rotations:       "rotations",
	Seals:           "shards sealed",
	Closes:          "shards closed",
	TokensMet:       "burnt tokens met and passed",
	TokenHeld:       "inserts answered OK for a token that was there",
	InsertHeadMoved: "inserts refused: head moved",
	InsertTooSlow:   "inserts refused: too slow",
	Purged:          "messages purged",
	Reads:           "reads checked",
	ReadsTooSlow:    "reads cut off",
	GapsNamed:       "damaged shards stopped and named",
	CutsMet:         "lanes that went on behind a cut",
	TailersEnded:    "feeds ended because sequences were given again",
	TailsKnown:      "ends of shards known from the checkpoint",
	ShortAnswers:    "short answers refused",
	LanesStopped:    "lanes that stopped because SHARDS lost its end",
	LettersKnown:    "dead letters known without their checkpoint",
	RoutedToTheSame: "frames routed again to the shard that they had, though it is full",
}

// String says what was seen.
func (s Sight) String() string { return sights[s] }
