// A sentence for the log about damage, or about a failure that no call returns, with its place as
// fields for programs.
//
// Thread-safety: as for a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "store/base/status.h"

namespace siltfs {

struct Notice {
  // Implicit, because most callers have only a sentence, or only a Status.
  Notice(std::string text) : sentence(std::move(text)) {}
  Notice(const char* text) : sentence(text) {}
  Notice(const Status& status)
      : sentence(status.ToString()),
        code(status.code()),
        path(status.path()),
        offset(status.offset()) {}
  // The sentence says more than the Status.
  Notice(std::string text, const Status& status)
      : sentence(std::move(text)),
        code(status.code()),
        path(status.path()),
        offset(status.offset()) {}

  operator const std::string&() const { return sentence; }

  std::string sentence;
  std::optional<StatusCode> code;
  std::string path = {};           // empty: unknown
  std::optional<uint64_t> offset;  // bytes in the file `path`
};

// While a NoticeScope exists, its thread logs this notice. Libraries for logs pass on only text; a
// sink of the log that stores fields, too, takes them from here.
class NoticeScope {
 public:
  // `notice` must outlive the scope. Scopes do not nest.
  explicit NoticeScope(const Notice& notice) { current_ = &notice; }
  ~NoticeScope() { current_ = nullptr; }
  NoticeScope(const NoticeScope&) = delete;
  NoticeScope& operator=(const NoticeScope&) = delete;

  // The notice that this thread logs, or null.
  static const Notice* Current() { return current_; }

 private:
  static inline thread_local const Notice* current_ = nullptr;
};

}  // namespace siltfs
