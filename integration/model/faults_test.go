package model

// Fault is what strikes a run, at the place its comment names.
type Fault int

// The faults. A run has only some of them, each at a rate of its own: rare
// combinations come up that way which a uniform mixture would never show.
const (
	ProducerDies     Fault = iota // between any two of its steps; its successor has another name
	RouterDies                    // while it waits for any answer; the request may be on its way
	SinkDies                      // likewise
	JanitorDies                   // likewise
	ReaderDies                    // likewise
	RouterStalls                  // it stops with an answer in hand, and goes on long after
	SinkStalls                    // likewise
	ReaderStalls                  // likewise
	Takeover                      // a lane gets another router while the old one goes on
	NatsDies                      // before it does what it is asked
	NatsDiesAfter                 // having done it, the answer unsent
	EngineDies                    // ClickHouse, before
	EngineDiesAfter               // ClickHouse, after
	TokenBurnt                    // ClickHouse dies between its deduplication log and the part
	RenameFails                   // ClickHouse logs the token, fails to keep the part, and says so
	AnswerLost                    // the server did what it was asked
	RequestLost                   // of a producer
	RequestLate                   // it arrives after the sender has given up
	RequestTwice                  // it arrives, and once more later
	FrameUnlucky                  // no request for one frame arrives for a long while
	LongOutage                    // of NATS or ClickHouse, past every window
	NatsClockJumps                // forwards: Msg-Ids are forgotten early
	EngineClockJumps              // forwards: inserts come too late
	EventsFull                    // EVENTS refuses
	ShardsFull                    // SHARDS refuses
	RotationChanged               // an operator gives the topic other thresholds; old routers keep the old
	TailStale                     // a router loads a shard's tail from a replica that lags
	FrameDamaged                  // SHARDS loses a frame that is not stored yet
	TailDamaged                   // SHARDS loses the last frame of an active shard
	EventsCut                     // EVENTS loses its end in a restart, and gives the sequences again
	ShardsCut                     // SHARDS loses its end in a restart, and gives the sequences again
	AnswerShort                   // of a list that was asked for only a part arrives
	faultKinds
)

// faults says how often each strikes: once in so many occasions. once holds for
// those that strike a run at most once.
var faults = [faultKinds]struct {
	name string
	odds int
	once bool
}{
	ProducerDies:     {name: "producer dies", odds: 200},
	RouterDies:       {name: "router dies", odds: 60},
	SinkDies:         {name: "sink dies", odds: 60},
	JanitorDies:      {name: "janitor dies", odds: 200},
	ReaderDies:       {name: "reader dies", odds: 200},
	RouterStalls:     {name: "router stalls", odds: 25},
	SinkStalls:       {name: "sink stalls", odds: 25},
	ReaderStalls:     {name: "reader stalls", odds: 25},
	Takeover:         {name: "lane taken over", odds: 10},
	NatsDies:         {name: "NATS dies before", odds: 200},
	NatsDiesAfter:    {name: "NATS dies after", odds: 200},
	EngineDies:       {name: "ClickHouse dies before", odds: 100},
	EngineDiesAfter:  {name: "ClickHouse dies after", odds: 100},
	TokenBurnt:       {name: "ClickHouse dies between token and part", odds: 8},
	RenameFails:      {name: "ClickHouse cannot rename the part", odds: 20},
	AnswerLost:       {name: "answer lost", odds: 30},
	RequestLost:      {name: "request lost", odds: 10},
	RequestLate:      {name: "request late", odds: 8},
	RequestTwice:     {name: "request twice", odds: 20},
	FrameUnlucky:     {name: "one frame never gets through", odds: 60},
	LongOutage:       {name: "outage past every window", odds: 60},
	NatsClockJumps:   {name: "clock of NATS jumps", odds: 120},
	EngineClockJumps: {name: "clock of ClickHouse jumps", odds: 75},
	EventsFull:       {name: "EVENTS full", odds: 75},
	ShardsFull:       {name: "SHARDS full", odds: 75},
	RotationChanged:  {name: "rotation changed", odds: 15},
	TailStale:        {name: "tail from a lagging replica", odds: 4},
	FrameDamaged:     {name: "frame damaged", odds: 50, once: true},
	TailDamaged:      {name: "last frame of a shard damaged", odds: 50, once: true},
	EventsCut:        {name: "EVENTS cut, sequences given again", odds: 20},
	ShardsCut:        {name: "SHARDS cut, sequences given again", odds: 20},
	AnswerShort:      {name: "answer cut short", odds: 12},
}

// String is the fault's name.
func (f Fault) String() string { return faults[f].name }
