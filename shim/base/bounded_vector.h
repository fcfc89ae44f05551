// A vector whose capacity is part of its type: no allocation, so that it can be used between fork
// and exec, in a signal handler, and under the engine's lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace happy {

// Room for elements. Of plain values it is left as it was found: a long vector with few elements costs the
// time and the pages of those few.
template <typename T, std::size_t Capacity, bool Plain = std::is_trivially_copyable_v<T>>
struct bounded_storage {
  T items[Capacity]{};
};
template <typename T, std::size_t Capacity>
struct bounded_storage<T, Capacity, true> {
  bounded_storage() {}  // NOLINT(modernize-use-equals-default): deleted if T initialises itself
  union {
    T items[Capacity];
  };
};

// Holds at most `Capacity` elements. Adding beyond that is refused, not undefined. Elements that are
// resources are given back as they leave.
template <typename T, std::size_t Capacity>
class bounded_vector {
  static_assert(std::is_move_assignable_v<T>);

 public:
  bounded_vector() = default;
  ~bounded_vector() = default;

  bounded_vector(const bounded_vector& other) requires std::is_copy_assignable_v<T> {
    for (const T& value : other) push_back(value);
  }
  bounded_vector(bounded_vector&& other) noexcept { take(other); }

  bounded_vector& operator=(const bounded_vector& other) requires std::is_copy_assignable_v<T> {
    if (this == &other) return *this;
    clear();
    for (const T& value : other) push_back(value);
    return *this;
  }
  bounded_vector& operator=(bounded_vector&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }

  // False, and nothing changed, when full.
  bool push_back(const T& value) requires std::is_copy_assignable_v<T> { return add(value); }
  bool push_back(T&& value) { return add(std::move(value)); }

  // False when full; `index` must be at most size().
  bool insert(std::size_t index, const T& value) {
    if (index > size_ || !push_back(value)) return false;
    std::rotate(begin() + index, end() - 1, end());
    return true;
  }

  void erase(std::size_t index) {
    for (std::size_t i = index + 1; i < size_; ++i) items()[i - 1] = std::move(items()[i]);
    if (index < size_) give_back(--size_);
  }

  void clear() {
    while (size_ > 0) give_back(--size_);
  }

  static constexpr std::size_t capacity() { return Capacity; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == Capacity; }

  T& operator[](std::size_t index) { return items()[index]; }
  const T& operator[](std::size_t index) const { return items()[index]; }
  T& back() { return items()[size_ - 1]; }
  const T& back() const { return items()[size_ - 1]; }

  T* begin() { return items(); }
  T* end() { return items() + size_; }
  const T* begin() const { return items(); }
  const T* end() const { return items() + size_; }

 private:
  template <typename U>
  bool add(U&& value) {
    if (size_ == Capacity) return false;
    if constexpr (std::is_trivially_copyable_v<T>) {
      std::construct_at(items() + size_, std::forward<U>(value));
    } else {
      items()[size_] = std::forward<U>(value);
    }
    ++size_;
    return true;
  }

  void give_back(std::size_t index) {
    if constexpr (!std::is_trivially_copyable_v<T>) items()[index] = T{};
  }

  void take(bounded_vector& other) {
    for (T& value : other) push_back(std::move(value));
    other.clear();
  }

  T* items() { return storage_.items; }
  const T* items() const { return storage_.items; }

  std::size_t size_ = 0;  // beside the first elements: a page less than behind the last
  bounded_storage<T, Capacity> storage_;
};

}  // namespace happy
