// A value, or the Status that explains its absence. Thread-safety: as for a plain value.
#pragma once

#include <cassert>
#include <optional>
#include <utility>

#include "store/base/status.h"

namespace siltfs {

template <typename T>
class [[nodiscard]] Result {
 public:
  // Both constructors are implicit, so that `return value;` and `return status;` read naturally.
  // Passing an OK status is a bug.
  Result(T value) : value_(std::move(value)) {}                                  // NOLINT
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT

  bool ok() const {
    status_.ok();
    return value_.has_value();
  }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  // Requires ok().
  T& value() & { return *Present(); }
  const T& value() const& {
    assert(value_.has_value());
    return *value_;
  }
  T&& value() && { return std::move(*Present()); }
  T& operator*() & { return *Present(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*Present()); }
  T* operator->() { return &*Present(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T>& Present() {
    assert(value_.has_value());
    return value_;
  }

  std::optional<T> value_;
  Status status_;
};

// The status of either type, for templates that take both.
inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const Result<T>& result) {
  return result.status();
}

}  // namespace siltfs

#define SILTFS_RESULT_CONCAT_(a, b) a##b
#define SILTFS_RESULT_NAME_(line) SILTFS_RESULT_CONCAT_(siltfs_result_, line)

// Example: `SILTFS_ASSIGN_OR_RETURN(auto file, env.OpenFile(path));`
#define SILTFS_ASSIGN_OR_RETURN(declaration, expression)      \
  auto SILTFS_RESULT_NAME_(__LINE__) = (expression);          \
  if (!SILTFS_RESULT_NAME_(__LINE__).ok())                    \
    return std::move(SILTFS_RESULT_NAME_(__LINE__)).status(); \
  declaration = std::move(SILTFS_RESULT_NAME_(__LINE__)).value()
