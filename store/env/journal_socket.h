// The journal of systemd, by its own protocol: one datagram for each entry, with named fields. The
// library libsystemd does the same.
//
// Thread-safety: every call from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class JournalSocket {
 public:
  static constexpr const char* kDefaultPath = "/run/systemd/journal/socket";
  // A longer value is cut off. The kernel refuses datagrams of some 200 KiB.
  static constexpr size_t kMostBytes = size_t{32} << 10;

  // kNotFound if there is no socket at this path.
  static Result<std::unique_ptr<JournalSocket>> Open(const std::string& path = kDefaultPath);

  JournalSocket(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  // Names have capital letters, digits and "_"; values may have any bytes. A call waits at most a
  // second for a journal that does not receive.
  using Field = std::pair<std::string_view, std::string>;
  Status Send(const std::vector<Field>& fields) const;

 private:
  const std::string path_;
  const Descriptor fd_;
};

// Whether standard error of this process is a stream to the journal, by the environment variable
// JOURNAL_STREAM, which systemd sets.
bool StandardErrorIsJournal();

}  // namespace siltfs
