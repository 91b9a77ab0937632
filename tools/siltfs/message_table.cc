#include "tools/siltfs/message_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace siltfs {
namespace {

constexpr std::array kOther = {
    MessageRow{"S0001", "", "The command failed for a reason that has no identifier of its own.",
               "read the sentence and the log"},
    MessageRow{"S0002", "", "The command line is wrong.", "see the help of the command"},
    MessageRow{"S0010", "", "There is no store, or nothing of that name.", "check the path"},
    MessageRow{"S0011", "", "Another process uses the store.", "try again when it has ended"},
    MessageRow{"S0012", "", "The store or the stream needs a newer siltfs.",
               "install a newer siltfs", true},
    MessageRow{"S0013", "", "The store is damaged.", "run siltfs fsck on the store's directory",
               true},
    MessageRow{"S0099", "", "The command was interrupted.", "run it again"},
};

// Returns whether the parts of `text` between asterisks are in the sentence in this order.
bool Matches(std::string_view sentence, std::string_view text) {
  size_t from = 0;
  while (true) {
    const size_t asterisk = text.find('*');
    const std::string_view part = text.substr(0, asterisk);
    const size_t found = sentence.find(part, from);
    if (found == std::string_view::npos) return false;
    if (asterisk == std::string_view::npos) return true;
    from = found + part.size();
    text.remove_prefix(asterisk + 1);
  }
}

const MessageRow& OtherMessage(ExitCode code) {
  const std::string id = code == ExitCode::kInterrupted
                             ? std::string("S0099")
                             : fmt::format("S{:04}", static_cast<int>(code));
  const auto found = std::ranges::find(kOther, id, &MessageRow::id);
  return found == kOther.end() ? kOther.front() : *found;
}

}  // namespace

std::span<const MessageRow> OtherMessages() { return kOther; }

std::vector<const MessageRow*> AllMessages() {
  std::vector<const MessageRow*> all;
  for (const auto rows : {OtherMessages(), UsageMessages(), StoreMessages(), TransferMessages(),
                          LogMessages(), DaemonMessages(), BucketMessages()}) {
    for (const MessageRow& row : rows) all.push_back(&row);
  }
  return all;
}

const MessageRow* FindMessage(std::string_view sentence) {
  for (const auto rows : {UsageMessages(), StoreMessages(), TransferMessages(), LogMessages(),
                          DaemonMessages(), BucketMessages()}) {
    for (const MessageRow& row : rows) {
      if (Matches(sentence, row.text)) return &row;
    }
  }
  return nullptr;
}

const MessageRow* FindMessageById(std::string_view id) {
  for (const MessageRow* row : AllMessages()) {
    if (row->id == id) return row;
  }
  return nullptr;
}

IdentifiedMessage IdentifyFailure(std::string_view sentence, ExitCode code) {
  const MessageRow* row = FindMessage(sentence);
  if (row == nullptr) row = &OtherMessage(code);
  if (!row->is_appended) return {std::string(sentence), row->id};
  return {fmt::format("{}; {}", sentence, row->remedy), row->id};
}

}  // namespace siltfs
