#include "tools/exporter/open_connections.h"

namespace siltfs {

void OpenConnections::Add(const void* connection, int descriptor) {
  const MutexLock lock(mutex_);
  states_[connection] = {.descriptor = descriptor, .turn = ++turns_};
  EndOneOfTooMany();
}

void OpenConnections::Remove(const void* connection) {
  const MutexLock lock(mutex_);
  states_.erase(connection);
}

void OpenConnections::EndOneOfTooMany() {
  size_t open = 0;
  State* oldest = nullptr;
  for (auto& [connection, state] : states_) {
    if (state.ended) continue;
    ++open;
    const bool is_new = state.turn == turns_;
    if (state.answering || is_new) continue;
    if (oldest == nullptr || state.turn < oldest->turn) oldest = &state;
  }
  if (open <= most_ || oldest == nullptr) return;
  oldest->ended = true;
  end_(oldest->descriptor);
}

void OpenConnections::SetAnswering(const void* connection, bool answering) {
  const MutexLock lock(mutex_);
  const auto found = states_.find(connection);
  if (found == states_.end()) return;
  found->second.answering = answering;
  found->second.turn = ++turns_;
}

OpenConnections::Answering::Answering(OpenConnections& connections, const void* connection)
    : connections_(connections), connection_(connection) {
  connections_.SetAnswering(connection_, true);
}

OpenConnections::Answering::~Answering() { connections_.SetAnswering(connection_, false); }

}  // namespace siltfs
