// The table of siltfs's messages. Each message has a stable identifier, which follows its sentence:
// "siltfs: /srv: there is no siltfs store here; ... [S0201]". docs/messages.md has the same table
// (tests/tools/message_table_test.cc), and `siltfs explain` prints its rows.
//
// A sentence is made where the failure is found, and does not know its row. The row is found by the
// parts of the sentence that never change. So a message needs a row here, and its maker needs
// nothing. The identifier of a removed message is not used again.
//
// Thread-safety: the table is constant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/siltfs/exit_code.h"

namespace siltfs {

struct MessageRow {
  std::string_view id;      // S and four digits
  std::string_view text;    // what the sentence contains; * stands for any text
  std::string_view cause;   // a sentence
  std::string_view remedy;  // a clause in the imperative, or that names a command
  // Whether `remedy` is appended to the sentence, which does not name it itself.
  bool is_appended = false;
};

// The rows of one kind of message, in the order of their identifiers.
std::span<const MessageRow> UsageMessages();     // S01: the command line
std::span<const MessageRow> StoreMessages();     // S02 to S06: stores, mounts, disks, damage
std::span<const MessageRow> TransferMessages();  // S07, S08: snapshots, copies
std::span<const MessageRow> LogMessages();       // S09: warnings; S10: the daemon's log
// S13: what an interruption leaves; S14: daemons of other versions; S15: requests that are refused.
std::span<const MessageRow> DaemonMessages();
std::span<const MessageRow> BucketMessages();  // S16
// The rows for sentences without a row of their own, one for each exit code. Their texts are empty.
std::span<const MessageRow> OtherMessages();

// All rows, in the order of their identifiers.
std::vector<const MessageRow*> AllMessages();

// Returns the row of a sentence; null if it has none. If several match, returns the first of the
// order of AllMessages.
const MessageRow* FindMessage(std::string_view sentence);

// Returns the row with this identifier; null if there is none.
const MessageRow* FindMessageById(std::string_view id);

// The sentence of a failure with its remedy, and its identifier.
struct IdentifiedMessage {
  std::string sentence;
  std::string_view id;
};
IdentifiedMessage IdentifyFailure(std::string_view sentence, ExitCode code);

}  // namespace siltfs
