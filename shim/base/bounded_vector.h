// A vector whose capacity is part of its type: no allocation, so that it can be used between fork
// and exec, in a signal handler, and under the engine's lock.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace happy {

// Holds at most `Capacity` elements. Adding beyond that is refused, not undefined. Elements that are
// resources are given back as they leave.
template <typename T, std::size_t Capacity>
class bounded_vector {
  static_assert(std::is_move_assignable_v<T>);

 public:
  constexpr bounded_vector() = default;

  // False, and nothing changed, when full.
  constexpr bool push_back(const T& value) requires std::is_copy_assignable_v<T> {
    if (size_ == Capacity) return false;
    items_[size_++] = value;
    return true;
  }
  constexpr bool push_back(T&& value) {
    if (size_ == Capacity) return false;
    items_[size_++] = std::move(value);
    return true;
  }

  // False when full; `index` must be at most size().
  constexpr bool insert(std::size_t index, const T& value) {
    if (size_ == Capacity || index > size_) return false;
    for (std::size_t i = size_; i > index; --i) items_[i] = std::move(items_[i - 1]);
    items_[index] = value;
    ++size_;
    return true;
  }

  constexpr void erase(std::size_t index) {
    for (std::size_t i = index + 1; i < size_; ++i) items_[i - 1] = std::move(items_[i]);
    if (index < size_) give_back(--size_);
  }

  constexpr void clear() {
    while (size_ > 0) give_back(--size_);
  }

  static constexpr std::size_t capacity() { return Capacity; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr bool full() const { return size_ == Capacity; }

  constexpr T& operator[](std::size_t index) { return items_[index]; }
  constexpr const T& operator[](std::size_t index) const { return items_[index]; }
  constexpr T& back() { return items_[size_ - 1]; }
  constexpr const T& back() const { return items_[size_ - 1]; }

  constexpr T* begin() { return items_; }
  constexpr T* end() { return items_ + size_; }
  constexpr const T* begin() const { return items_; }
  constexpr const T* end() const { return items_ + size_; }

 private:
  constexpr void give_back(std::size_t index) {
    if constexpr (!std::is_trivially_copyable_v<T>) items_[index] = T{};
  }

  T items_[Capacity]{};
  std::size_t size_ = 0;
};

}  // namespace happy
