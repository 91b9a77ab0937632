// A log that other programs may rename at any time, as logrotate(8) does. The next line then goes
// to a new file under the old name. No signal is needed, and no line is lost: a line is written as
// a whole, to the old file or to the new one.
//
// The log's directory stays open. So the log is found even if a mount hides its path, and no call
// here makes a request to such a mount.
//
// Thread-safety: one thread at a time. Nothing is synced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/result.h"
#include "store/env/posix_descriptor.h"

namespace siltfs {

class LogFile {
 public:
  // Opens the file at this absolute path, or creates it.
  static Result<std::unique_ptr<LogFile>> Open(const std::string& path);

  // Appends a line, which has its newline. If the name leads to no file or another one, first
  // changes to that file, which is created with the permissions of the old one. If that fails, the
  // line goes to the old file.
  Status Append(std::string_view line);

 private:
  LogFile(std::string path, std::string name, Descriptor directory)
      : path_(std::move(path)), name_(std::move(name)), directory_(std::move(directory)) {}

  Status OpenByName(uint32_t mode);
  bool IsStillThere() const;

  const std::string path_;
  const std::string name_;
  const Descriptor directory_;
  Descriptor file_;
  uint64_t device_ = 0;
  uint64_t inode_ = 0;
};

}  // namespace siltfs
