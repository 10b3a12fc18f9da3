import tensorflow as tf

losses = []
w = tf.constant(0.5)
for epoch in range(40):
    for k in range(1500):
        loss = w * float(k)
        losses.append(loss)
    print(f"epoch {epoch}: loss {float(sum(losses[-10:])):.3f}", flush=True)
