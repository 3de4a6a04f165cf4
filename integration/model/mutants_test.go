package model

// Break is a piece of the protocol, or of what it stands on, broken on purpose.
// Breaks combine with |.
type Break uint64

// The breaks.
const (
	NoReadBack Break = 1 << iota
	RangeToken
	NoHeadAssertion
	NoDeadline
	NoAttempts
	NoPositionCheck
	CheckpointAfter
	NoCheckpointExpectation
	NoTailExpectation
	SilenceIsCommitted
	NoWindow
	NarrowWindow
	ForgetsWindows
	ForgetsRefused
	NoFence
	SealsBeforeCommit
	SealsWhatIsRetired
	WidensAfter
	WidenAnyStatus
	WidenChecksLate
	Renumbers
	SilenceIsStored
	NoProducerWindow
	DiscardsOld
	PurgesLast
	PurgesUnstored
	NoKeepTime
	ReadsTableFirst
	ReadsShardsFirst
	ReadsRegistryFirst
	GroupRefusalIsCommitted
	GroupResendsCheckpoint
	GroupResendsBare
	GroupCutInside
	NumbersAreMessages
	GoesOnAtTheEnd
	FollowsNumbers
	PurgesNumbers
	NoTails
	KnowsLostTailsAlone
	ShortIsWhole
	KnowsThroughRestart
	TakesTailsAsTheyAre
	BeginsBehindLost
	KeepsLettersTwice
	LeavesEarly
	ConstantPositions
	OneFrameOff
	EndedIsBegun
	OrderByID

	TokenBeforePart
	NoLog
	ForgetsBurnt
	EngineClockSteps
	SealReadsReplica
	PlaceReadsReplica
	ReaderReadsReplica
)

// Mutant is a protocol that must be caught.
type Mutant struct {
	Name   string
	Breaks Break
	// Storm is what it is sought in; any weather when there is none.
	Storm Storm
	// Alone are breaks that are harmless one by one, because another guard covers
	// each: Covered says how.
	Alone   []Break
	Covered string
}

// Mutants of the protocol itself.
var Mutants = []Mutant{
	{Name: "the sink trusts OK and does not read the head back", Breaks: NoReadBack},
	{Name: "the token names the range, not the predecessor", Breaks: RangeToken},
	{Name: "no head assertion in the insert", Breaks: NoHeadAssertion, Storm: SinkStorm},
	{Name: "all rows of an insert carry the position of its last frame", Breaks: ConstantPositions},
	{Name: "a row carries the position of the frame before its own", Breaks: OneFrameOff},
	{Name: "a shard is taken to have ended where it began", Breaks: EndedIsBegun},
	{Name: "shards of a lane are ordered by their ids", Breaks: OrderByID},
	{Name: "no deadline in the insert", Breaks: NoDeadline, Storm: SinkStorm},
	{Name: "the attempt stays the same after a burnt token", Breaks: NoAttempts},
	{Name: "the sink does not check positions", Breaks: NoPositionCheck},
	{Name: "the checkpoint follows the batch", Breaks: CheckpointAfter},
	{Name: "no expectation on the checkpoint", Breaks: NoCheckpointExpectation},
	{Name: "no expectation on the shard's tail, and its end is only read", Breaks: NoTailExpectation | KnowsLostTailsAlone,
		Alone:   []Break{NoTailExpectation, KnowsLostTailsAlone},
		Covered: "the checkpoint knows where the shard ends, and the stream refuses a tail from a lagging replica"},
	{Name: "the router takes silence for a commit", Breaks: SilenceIsCommitted},
	{Name: "one lane's refusal is taken for the others' commit", Breaks: GroupRefusalIsCommitted},
	{Name: "of a refused group the checkpoints are sent again without their frames", Breaks: GroupResendsCheckpoint},
	{Name: "a refused group is sent again without expectations", Breaks: GroupResendsBare},
	{Name: "a group is cut inside a lane's part", Breaks: GroupCutInside},
	{Name: "no anti-replay window: Msg-Id alone", Breaks: NoWindow},
	{Name: "a window narrower than what is in flight", Breaks: NarrowWindow},
	{Name: "the checkpoint does not keep the windows", Breaks: ForgetsWindows},
	{Name: "the window forgets refused frames", Breaks: ForgetsRefused},
	{Name: "no fence before sealing", Breaks: NoFence, Storm: RouterStorm},
	{Name: "a shard is sealed before the batch after it commits", Breaks: SealsBeforeCommit, Storm: RouterStorm},
	{Name: "what is retired is read after the fence", Breaks: SealsWhatIsRetired, Storm: RouterStorm},
	{Name: "the range is widened after the batch", Breaks: WidensAfter},
	{Name: "a closed shard may be widened", Breaks: WidenAnyStatus, Storm: RouterStorm},
	{Name: "whether a shard is closed is looked at only after a conflict", Breaks: WidenChecksLate, Storm: RouterStorm},
	{Name: "the producer gives a resent frame a new seq", Breaks: Renumbers},
	{Name: "the producer takes silence for stored", Breaks: SilenceIsStored},
	{Name: "the producer sends on past a stuck frame", Breaks: NoProducerWindow},
	{Name: "a full stream evicts its oldest messages", Breaks: DiscardsOld},
	{Name: "the janitor purges a shard's last frame, and its end is only read", Breaks: PurgesLast | KnowsLostTailsAlone,
		Alone: []Break{PurgesLast, KnowsLostTailsAlone}, Covered: "the checkpoint knows where the shard ends"},
	{Name: "the janitor purges frames that are not stored", Breaks: PurgesUnstored},
	{Name: "the reader asks the table first", Breaks: ReadsTableFirst},
	{Name: "the reader asks the registry first", Breaks: ReadsRegistryFirst},
	{Name: "a sequence of EVENTS is taken for a message after a cut", Breaks: NumbersAreMessages, Storm: CutStorm},
	{Name: "after a cut a lane goes on at the end of EVENTS", Breaks: GoesOnAtTheEnd, Storm: CutStorm},
	{Name: "a feed waits for its next sequence through a cut", Breaks: FollowsNumbers, Storm: CutStorm},
	{Name: "the janitor purges by sequences of before a cut", Breaks: PurgesNumbers, Storm: CutStorm},
	{Name: "the position of a lost last frame is given again", Breaks: NoTails, Storm: CutStorm},
	{Name: "a part of an answer counts as all of it", Breaks: ShortIsWhole, Storm: CutStorm},
	{Name: "a shard that ends above the checkpoint is gone on with", Breaks: TakesTailsAsTheyAre, Storm: ShardsStorm},
	{Name: "a shard is begun while the one before it lacks its end", Breaks: BeginsBehindLost, Storm: ShardsStorm},
	{Name: "a dead letter that lost its checkpoint is kept again", Breaks: KeepsLettersTwice, Storm: ShardsStorm},
	{Name: "a shard is left before what it lost is routed again", Breaks: LeavesEarly, Storm: ShardsStorm},
	{Name: "no settle time in EVENTS, and SHARDS read before it", Breaks: NoKeepTime | ReadsShardsFirst,
		Alone:   []Break{NoKeepTime},
		Covered: "a frame that leaves EVENTS during a read is met in SHARDS, which is read later, or below the head in the table"},
}

// Grounds are what the protocol stands on, each taken away.
var Grounds = []Mutant{
	{Name: "ClickHouse shows a token before its part", Breaks: TokenBeforePart},
	{Name: "ClickHouse keeps no deduplication log, its default", Breaks: NoLog, Storm: SinkStorm},
	{Name: "the deduplication log forgets a burnt token while its head stands", Breaks: ForgetsBurnt, Storm: SinkStorm},
	{Name: "the clock of ClickHouse steps back", Breaks: EngineClockSteps, Storm: SinkStorm},
	{Name: "a shard is sealed by a tail from a lagging replica, and its end is only read", Breaks: SealReadsReplica | KnowsLostTailsAlone},
	{Name: "a router goes on through a restart in which SHARDS lost its end", Breaks: KnowsThroughRestart, Storm: ShardsStorm},
	{Name: "a frame is placed by a head entry from a lagging replica", Breaks: PlaceReadsReplica, Storm: RouterStorm},
	{Name: "a reader reads EVENTS from a lagging replica", Breaks: ReaderReadsReplica},
}

// broken says whether b is broken in this run.
func (w *World) broken(b Break) bool { return w.breaks&b != 0 }
