"""Study files: axes, designs, blocks, and the instances that they make."""
